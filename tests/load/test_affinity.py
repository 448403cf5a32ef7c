"""python3 -m unittest discover -s tests/load"""

import json
import unittest

import affinity


class Affinity(unittest.TestCase):
    """What is sent and what is made of where it went."""

    def test_a_session_s_later_turns_count_where_its_first_was(self):
        for visits, expect in [
            ([[0, 0, 0], [1, 1, 1]], (1.0, 1.0)),
            ([[0, 1, 0], [1, 1, 1]], (0.75, 4 / 3)),
            ([[0, 0], [0, 0]], (1.0, 2.0)),
            ([], (0.0, 0.0)),
        ]:
            with self.subTest(visits):
                self.assertEqual(affinity.judge(visits, 2), expect)

    def test_turns_extend_each_other_and_grow_by_steps(self):
        for shared in ("", "s" * affinity.SHARED_BYTES):
            turns = list(affinity.conversation(7, shared))
            self.assertEqual(len(turns), affinity.TURNS)
            for number, (before, after) in enumerate(zip([[]] + turns, turns)):
                self.assertEqual(after[:len(before)], before)
                self.assertEqual(after[-1]["role"], "user")
                extra = len(json.dumps(after)) - (number + 1) * affinity.STEP_BYTES
                self.assertTrue(0 <= extra < 2.2 * affinity.MESSAGE_BYTES, extra)

    def test_a_cell_played_twice_shows_its_range(self):
        row = lambda share: {
            "system": "a", "shared": 0, "key": "none", "affinity": share, "hottest": 1.0 + share, "errors": []}
        self.assertEqual(
            affinity.render([row(0.5), row(0.25)]).splitlines()[2],
            "| a | 0.25–0.50 (hottest 1.50x) | – | – | – | – | – |")


if __name__ == "__main__":
    unittest.main()
