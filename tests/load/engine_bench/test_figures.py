"""python3 -m unittest discover -s tests/load/engine_bench"""

import unittest

import figures


class Figures(unittest.TestCase):
    """Each test: runs of both in, the lines of the table out."""

    def check(self, peer, own, *expect):
        """Compares the lines below the table's head."""
        self.assertEqual(figures.render("peer", peer, own).splitlines()[2:], list(expect))

    def test_over_one_is_faster_for_speeds_and_for_times(self):
        self.check(
            [{("prefill", 512, 1): 100.0, ("ttft_cold", 512, 1): 300.0}],
            [{("prefill", 512, 1): 200.0, ("ttft_cold", 512, 1): 150.0}],
            "| prefill of 512 tokens | tok/s | 100.0 | 200.0 | 2.00 |",
            "| first token of 512 new tokens | ms | 300.0 | 150.0 | 2.00 |")

    def test_ratios_are_of_runs_that_followed_each_other(self):
        key = ("decode", 512, 4)
        self.check(
            [{key: 10.0}, {key: 100.0}, {key: 10.0}], [{key: 20.0}, {key: 200.0}, {key: 30.0}],
            "| decode after 512 tokens, 4 streams | tok/s together | 10.0 (10.0–100.0) | 30.0 (20.0–200.0) | 2.00 |")

    def test_a_system_that_was_not_run_has_dashes(self):
        self.check([], [{("ttft_warm", 2048, 1): 12.0}],
                   "| first token of 2,048 tokens asked before | ms | – | 12.0 | – |")


if __name__ == "__main__":
    unittest.main()
