"""Writes held-out questions as chat messages, one JSON object a line: those on which the training scripts evaluate.

usage: make_items.py > held_out.jsonl

A task that needs tools is left out: the API does not take them yet. Marks by which the scripts spell words letter by letter in
answers are for their tokenizer alone and do not appear here.
"""
import json
import pathlib
import re
import sys

SCRIPTS = pathlib.Path(__file__).parents[2] / "engine-replica/models/training"
ITEMS = 20
ITEMS_LONG = 8  # of the task with the longest contexts, to keep the file small
SEED = 99  # the evaluation's own, so that its first items are these
EASY_TURNS = ["greet", "who", "copy", "sent", "cap", "refuse", "fact", "json"]
TURN = re.compile(r"<\|im_start\|>(\w+)\n(.*?)<\|im_end\|>\n", re.DOTALL)


def items(scripts, task, count):
    """(messages, answer) of one task, drawn as the training scripts' evaluate.py draws them."""
    stream = scripts.Stream(SEED, evaluate=True)
    for _ in range(count):
        drawn = stream.draw(stream.r.choice(EASY_TURNS) if task == "multi" else task)
        drawn.setdefault("more", stream.r.randint(1, 4) if task == "multi" else 0)
        turns = TURN.findall(scripts.clean(stream.prompt(drawn)))
        yield [{"role": role, "content": content} for role, content in turns], scripts.clean(drawn["a"])


def main():
    sys.path.insert(0, str(SCRIPTS))
    import stream as scripts

    for task in [*scripts.TASKS, "multi"]:
        for messages, answer in items(scripts, task, ITEMS_LONG if task == "vfar" else ITEMS):
            row = {"task": task, "hard": task in scripts.HARD, "messages": messages, "answer": answer}
            print(json.dumps(row, separators=(",", ":"), ensure_ascii=False))


main()
