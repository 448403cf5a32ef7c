"""The data is right by arithmetic done another way, and what is held out is never trained on."""
import random
import re
import unittest

from draw import held_out
from stream import HARD, TASKS, Stream, clean
from tools import t_tool


def drawn(task, n=300, seed=3):
    r = random.Random(seed)
    return [TASKS[task](r, 1.0) for _ in range(n)]


class Tasks(unittest.TestCase):
    def test_sums_are_what_their_words_say(self):
        for task in ("add", "sub", "mul1", "mul2", "mul3", "two"):
            for d in drawn(task):
                words = d["q"].replace(" plus ", "+").replace(" minus ", "-").replace(" times ", "*").replace(" x ", "*")
                expression = re.search(r"[\d(][\d+*() -]*[\d)]", words).group()
                self.assertEqual(str(eval(expression)), d["a"], d["q"])

    def test_a_scratchpad_ends_in_the_answer(self):
        for task in ("add", "sub", "mul1", "mul2", "mul3", "two", "unit"):
            for d in drawn(task):
                self.assertEqual(int(d["think"].split(":")[-1]), int(d["a"]), d["q"])
        for task in ("compare", "day"):
            for d in drawn(task):
                self.assertEqual(d["think"].split()[-1], d["a"], d["q"])

    def test_letters_are_counted_and_turned_round(self):
        for d in drawn("count"):
            _, word, letter = d["key"].split()
            self.assertEqual(str(word.count(letter)), d["a"], d["q"])
        for d in drawn("reverse"):
            self.assertEqual(d["key"].split()[1][::-1], clean(d["a"]), d["q"])

    def test_the_smaller_decimal_fraction_is_smaller(self):
        for d in drawn("compare"):
            x, y = map(float, d["key"].split()[1:])
            smaller = "smaller" in d["q"] or "less" in d["q"]
            self.assertEqual(float(d["a"]), min(x, y) if smaller else max(x, y), d["q"])

    def test_the_calculator_is_asked_for_the_expression_of_the_question(self):
        r = random.Random(4)
        for _ in range(300):
            d = t_tool(r, 1.0)
            self.assertEqual(str(eval(d["key"].removeprefix("tool "))), d["value"])
            self.assertIn(d["key"].removeprefix("tool "), d["a"])

    def test_every_answer_is_found_in_the_context_it_was_planted_in(self):
        for task in ("fact", "far", "vfar"):
            for d in drawn(task, 100):
                context = d["q"] + (d.get("system") or "") + "".join(q for q, _ in d.get("history", []))
                self.assertIn(d["a"].removesuffix(".").removeprefix("In "), context)


class Streams(unittest.TestCase):
    def test_the_same_seed_gives_the_same_examples(self):
        a, b = Stream(11), Stream(11)
        self.assertEqual([a.example(0.7) for _ in range(200)], [b.example(0.7) for _ in range(200)])

    def test_what_is_evaluated_is_never_trained_on(self):
        training, held = Stream(1), Stream(1, evaluate=True)
        for task in list(HARD) + ["copy", "fact", "far", "json"]:
            for _ in range(100):
                t, h = training.draw(task)["key"], held.draw(task)["key"]
                if t is not None:
                    self.assertFalse(held_out(t))
                if h is not None:
                    self.assertTrue(held_out(h))


if __name__ == "__main__":
    unittest.main()
