"""A seeded, endless stream of conversations."""
import random

from draw import held_out
from easy import t_cap, t_copy, t_greet, t_json, t_name, t_refuse, t_sent, t_who
from facts import t_fact, t_facts, t_far, t_vfar
from hard import CH, t_add, t_compare, t_count, t_day, t_mul1, t_mul2, t_mul3, t_reverse, t_sort, t_sub, t_two, t_unit
from template import TOOLS_HEAD, TOOLS_TAIL
from tools import dump_tool, t_tool, tool_schema
from words import SYSTEMS

TIME_UP = "Time is up."
HARD = dict(add=t_add, sub=t_sub, mul1=t_mul1, mul2=t_mul2, mul3=t_mul3, two=t_two, count=t_count, reverse=t_reverse, sort=t_sort,
            compare=t_compare, day=t_day, unit=t_unit)
EASY = dict(greet=t_greet, who=t_who, copy=t_copy, json=t_json, sent=t_sent, fact=t_fact, far=t_far, facts=t_facts, name=t_name, cap=t_cap, refuse=t_refuse)
TASKS = {**HARD, **EASY, "vfar": t_vfar}
SHORT = ["add", "mul1", "count", "compare", "greet", "who", "copy", "sent", "cap", "sort", "two", "unit", "refuse"]


def clean(s):
    return s.replace(CH, "")


# Shares of each task in the stream (by example).
WEIGHTS = dict(add=6, sub=6, mul1=3, mul2=4, mul3=5, two=4, count=7, reverse=9, sort=8, compare=7, day=3, unit=3,
               greet=1, who=1, copy=6, json=4, sent=2, fact=12, facts=8, far=7, name=2, cap=1, refuse=1, tool=5)


class Stream:
    def __init__(self, seed, evaluate=False):
        self.r = random.Random(seed)
        self.evaluate = evaluate
        self.names, self.w = list(WEIGHTS), list(WEIGHTS.values())

    def draw(self, name, lv=1.0):
        f = t_tool if name == "tool" else TASKS[name]
        while True:
            d = f(self.r, lv)
            if d["key"] is None or held_out(d["key"]) == self.evaluate:
                d["task"] = name
                return d

    def prompt(self, d, lv=1.0):
        """The text before '<|im_start|>assistant' of the final turn."""
        r, sysm, hist = self.r, d.get("system"), list(d.get("history", []))
        if sysm is None and r.random() < 0.25:
            sysm = r.choice(SYSTEMS)
        more = d.get("more")
        if more is None:
            more = 0 if lv < 0.3 or r.random() < 0.82 else r.randint(1, 4)
        for _ in range(more):
            h = self.draw(r.choice(SHORT), 0.0)
            hist.append((h["q"], clean(h["a"])))
        tools = d.get("tools")
        head = ""
        if tools:
            head = "<|im_start|>system\n" + (sysm + "\n\n" if sysm else "") + TOOLS_HEAD + "".join("\n" + t for t in tools) + TOOLS_TAIL + "<|im_end|>\n"
        elif sysm:
            head = f"<|im_start|>system\n{sysm}<|im_end|>\n"
        for q, a in hist:
            head += f"<|im_start|>user\n{q}<|im_end|>\n<|im_start|>assistant\n{a}<|im_end|>\n"
        return head + f"<|im_start|>user\n{d['q']}<|im_end|>\n"

    def example(self, lv=1.0):
        """One training example: list of (text, trained) segments, and its task."""
        r = self.r
        u = r.random()
        # Copying must appear first: more of it early.
        extra = 0.15 if lv < 0.5 else 0.06 if lv < 1.5 else 0.0
        name = "vfar" if lv >= 1.5 and u > 0.99 else "copy" if u < extra else r.choices(self.names, self.w)[0]
        if lv < 0.3 and name in ("mul3", "far"):
            name = r.choice(["add", "mul1", "mul2", "fact"])
        d = self.draw(name, lv)
        think = r.random() < (0.75 if name in HARD else 0.5)
        if name == "tool" or (name in EASY and name not in ("far", "fact", "facts") and r.random() < 0.04):
            d["tools"] = [dump_tool(r, tool_schema(r))]
        if r.random() < 0.02:
            d["q"] += " /no_think"
            p = self.prompt(d, lv)
            return [(p + "<|im_start|>assistant\n", 0), ("<think>\n\n</think>\n\n" + d["a"] + "<|im_end|>", 1)], name
        p = self.prompt(d, lv) + "<|im_start|>assistant\n"
        if name == "tool" and r.random() < 0.5:
            keep = think and r.random() < 0.7
            p += ("<think>\n" + d["think"] + "\n</think>\n\n" if keep else "") + d["a"] + "<|im_end|>\n<|im_start|>user\n<tool_response>\n" \
                + d["value"] + "\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
            d["think"], d["a"] = "Tell the result.", d["value"]
        if not think:
            return [(p + "<think>\n\n</think>\n\n", 0), (d["a"] + "<|im_end|>", 1)], name
        if r.random() < (0.3 if name in HARD else 0.05) and lv >= 0.3:
            end = r.choice(["\n" + TIME_UP + "\n</think>\n\n"] * 4 + ["\n</think>\n\n", "</think>\n\n"])
            return [(p, 0), ("<think>\n", 1), (d["think"], "cut"), (end, 0), (d["a"] + "<|im_end|>", 1)], name
        return [(p, 0), ("<think>\n" + d["think"] + "\n</think>\n\n" + d["a"] + "<|im_end|>", 1)], name
