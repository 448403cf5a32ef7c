"""Scores and tables of accuracy.py, without a server."""
import pathlib
import tempfile
import unittest
from xml.etree import ElementTree

import accuracy
import curve


def reply(content, reasoning, tokens):
    return {"choices": [{"message": {"content": content}}],
            "usage": {"completion_tokens": tokens, "completion_tokens_details": {"reasoning_tokens": reasoning}}}


class Score(unittest.TestCase):
    def test_only_the_whole_content_is_right(self):
        self.assertEqual(accuracy.score(reply("1692", 5, 12), "1692"), (True, 5, 12))
        self.assertEqual(accuracy.score(reply(" 1692\n", 0, 4), "1692"), (True, 0, 4))
        self.assertEqual(accuracy.score(reply("It is 1692.", 0, 6), "1692"), (False, 0, 6))

    def test_an_answer_cut_inside_its_reasoning_is_wrong(self):
        self.assertEqual(accuracy.score(reply(None, 320, 320), "1692"), (False, 320, 320))


class Table(unittest.TestCase):
    def test_groups_are_means_over_tasks_and_hard_tasks_come_first(self):
        items = [{"task": task, "hard": hard} for task, hard in [("cap", False), ("add", True), ("add", True), ("mul", True)]]
        scores = [((True, 0, 2), (True, 4, 8)), ((False, 0, 4), (True, 80, 90)), ((True, 0, 4), (True, 60, 70)), ((False, 0, 6), (False, 100, 110))]
        lines = accuracy.table(accuracy.rows(items, scores)).splitlines()
        self.assertEqual(lines[2:], [
            "| add | hard | 2 | 50% | 100% | 70.0 | 4.0 | 80.0 |",
            "| mul | hard | 1 | 0% | 0% | 100.0 | 6.0 | 110.0 |",
            "| cap | easy | 1 | 100% | 100% | 4.0 | 2.0 | 8.0 |",
            "| mean of hard | hard | 3 | 25% | 50% | 85.0 | 5.0 | 95.0 |",
            "| mean of easy | easy | 1 | 100% | 100% | 4.0 | 2.0 | 8.0 |",
        ])


class Curve(unittest.TestCase):
    ITEMS = [{"task": task, "hard": hard} for task, hard in [("add", True), ("add", True), ("mul", True), ("cap", False)]]
    # Without thinking, under a budget of 8, without one.
    TOLD = [[(False, 0, 4), (True, 8, 20), (True, 40, 50)], [(False, 0, 4), (False, 8, 20), (True, 60, 70)],
            [(False, 0, 4), (False, 8, 20), (False, 90, 99)], [(True, 0, 2), (True, 5, 9), (True, 5, 9)]]

    def test_each_budget_has_a_row_of_means_over_tasks(self):
        lines = curve.table([8, None], curve.summary(self.ITEMS, self.TOLD)).splitlines()
        self.assertEqual(lines, [
            "| budget | hard: right | hard: reasoning tokens | easy: right | easy: reasoning tokens |",
            "|---|--:|--:|--:|--:|",
            "| no think | 0% | 0.0 | 100% | 0.0 |",
            "| 8 | 25% | 8.0 | 100% | 5.0 |",
            "| none | 50% | 70.0 | 100% | 5.0 |",
        ])

    def test_the_drawing_is_well_formed_and_its_labels_do_not_meet(self):
        root = ElementTree.fromstring(curve.svg([8, None], curve.summary(self.ITEMS, self.TOLD), "a title"))
        self.assertEqual(len(root.findall("{*}polyline")), 2)
        heights = [y for y, _, _ in curve.spread([(10, "a", ""), (12, "b", ""), (11, "c", ""), (90, "d", "")])]
        self.assertEqual(heights, [10, 24, 38, 90])

    def test_budgets_are_numbers_or_none(self):
        self.assertEqual(accuracy.read_budgets("0,8,none"), [0, 8, None])
        for text in ["-1", "x", ""]:
            with self.assertRaises(ValueError):
                accuracy.read_budgets(text)


class Ways(unittest.TestCase):
    def test_each_way_is_told_beside_always_thinking(self):
        items = [{"task": "add", "hard": True}, {"task": "cap", "hard": False}]
        scores = [((False, 0, 4), (True, 80, 90), (True, 80, 90)), ((True, 0, 2), (True, 4, 10), (True, 0, 2))]
        lines = accuracy.ways_table(accuracy.ways_rows(items, scores)).splitlines()
        self.assertEqual(lines[2:5], [
            "| all | 2 | never think | 50.0% | 3.0 | 50.0% | 6.0% |",
            "| all | 2 | always think | 100.0% | 50.0 | 100.0% | 100.0% |",
            "| all | 2 | policy's lanes | 100.0% | 46.0 | 100.0% | 92.0% |",
        ])
        self.assertEqual(len(lines), 2 + 3 * 3)


class Items(unittest.TestCase):
    def test_the_items_are_whole_and_can_be_chosen_by_task(self):
        path = accuracy.HERE / "held_out.jsonl"
        rows = accuracy.read_items(path)
        self.assertLess(path.stat().st_size, 200_000)
        for row in rows:
            self.assertEqual(row["messages"][-1]["role"], "user")
            self.assertTrue(row["answer"] and row["answer"] == row["answer"].strip())
        chosen = accuracy.read_items(path, ["mul2"])
        self.assertEqual({row["task"] for row in chosen}, {"mul2"})
        with self.assertRaises(SystemExit):
            accuracy.read_items(path, ["no such task"])

    def test_an_empty_line_at_the_end_is_no_item(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "items.jsonl"
            path.write_text('{"task":"add"}\n\n')
            self.assertEqual(accuracy.read_items(path), [{"task": "add"}])


if __name__ == "__main__":
    unittest.main()
