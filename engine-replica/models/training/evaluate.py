"""Greedy evaluation on held-out items: think / no-think accuracy, thinking tokens, accuracy under forced budgets, tool calls.

multi: easy questions after 1-4 other turns; tool: the exact call; tool_reply: the answer after the tool's response.

  python evaluate.py MODEL_FOLDER [--n 100] [--out results.json]
"""
import argparse
import json
import time

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from stream import HARD, TASKS, TIME_UP, Stream, clean
from tokens import encode
from tools import tool_schema

BUDGETS = [8, 16, 32, 64, 128, None]


class Runner:
    def __init__(self, path, batch=50):
        self.tok = AutoTokenizer.from_pretrained(path)
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self.batch = batch
        self.end = self.tok.convert_tokens_to_ids("<|im_end|>")
        self.close = self.tok.convert_tokens_to_ids("</think>")
        self.pad = self.tok.convert_tokens_to_ids("<|endoftext|>")

    @torch.inference_mode()
    def generate(self, prompts, limit):
        """Greedy continuations (token ids, without the end token)."""
        out = [None] * len(prompts)
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        for s in range(0, len(order), self.batch):
            idx = order[s:s + self.batch]
            t = max(len(prompts[i]) for i in idx)
            ids = torch.tensor([[self.pad] * (t - len(prompts[i])) + prompts[i] for i in idx])
            mask = torch.tensor([[0] * (t - len(prompts[i])) + [1] * len(prompts[i]) for i in idx])
            g = self.model.generate(input_ids=ids, attention_mask=mask, do_sample=False, max_new_tokens=limit,
                                    eos_token_id=self.end, pad_token_id=self.pad)[:, t:].tolist()
            for i, row in zip(idx, g):
                if self.end in row:
                    row = row[:row.index(self.end)]
                out[i] = row
        return out

    def ids(self, text):
        return encode(self.tok.backend_tokenizer, text)

    def text(self, ids):
        return self.tok.decode(ids, skip_special_tokens=False).strip()


def items(name, n, seed=99):
    s = Stream(seed, evaluate=True)
    out = []
    for _ in range(n):
        d = s.draw(s.r.choice(["greet", "who", "copy", "sent", "cap", "refuse", "fact", "json"]) if name == "multi" else name.removesuffix("_reply"))
        if name.startswith("tool"):
            d["tools"] = [json.dumps(tool_schema(None))]
        d.setdefault("more", s.r.randint(1, 4) if name == "multi" else 0)
        p = s.prompt(d) + "<|im_start|>assistant\n"
        if name == "tool_reply":
            p += d["a"] + "<|im_end|>\n<|im_start|>user\n<tool_response>\n" + d["value"] + "\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
            d["a"] = d["value"]
        out.append((p, clean(d["a"]), d))
    return out


def table(res):
    h, e = [x for x in res if x in HARD], [x for x in res if x not in HARD]
    out = ["| task | no think | think | thinking tokens |" + "".join(f" budget {b} |" for b in BUDGETS[:-1]), "|---|" + "---|" * (len(BUDGETS) + 2)]

    def row(name, get):
        out.append(f"| {name} | {get('no_think')} | {get('think')} | {get('think_tokens')} |" + "".join(f" {get(f'b{b}')} |" for b in BUDGETS[:-1]))

    for group, name in ((h, "mean of hard"), (e, "mean of easy")):
        for x in group:
            row(x, lambda k: res[x].get(k, ""))
        if group:
            row("**" + name + "**", lambda k: round(sum(res[x][k] for x in group) / len(group), 1) if k in res[group[0]] else "")
    return "\n".join(out)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("--n", type=int, default=100)
    p.add_argument("--tasks", default=",".join(list(TASKS) + ["multi", "tool", "tool_reply"]))
    p.add_argument("--limit", type=int, default=260, help="most tokens a thinking answer may take (the longest scratchpads take about 200)")
    p.add_argument("--budgets", type=int, default=1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--show", type=int, default=0)
    p.add_argument("--out")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    r = Runner(a.model)
    res = {}
    for name in a.tasks.split(","):
        t0 = time.time()
        its = items(name, a.n if name != "vfar" else max(10, a.n // 3))
        pr = [r.ids(x[0]) for x in its]
        gold = [x[1] for x in its]
        acc = lambda got: round(100 * sum(g == w for g, w in zip(got, gold)) / len(gold), 1)
        off = [r.text(g) for g in r.generate([x + r.ids("<think>\n\n</think>\n\n") for x in pr], 80)]
        full = r.generate(pr, a.limit)
        ans, th = [], []
        for g in full:
            k = g.index(r.close) if r.close in g else len(g)
            th.append(g[:k])
            ans.append(r.text(g[k + 1:]))
        row = dict(think=acc(ans), no_think=acc(off), think_tokens=round(sum(map(len, th)) / len(th), 1),
                   unclosed=sum(r.close not in g for g in full))
        if a.budgets and (name in HARD):
            for b in BUDGETS[:-1]:
                cut = [i for i, t in enumerate(th) if len(t) > b]
                got = list(ans)
                if cut:
                    g = r.generate([pr[i] + th[i][:b] + r.ids("\n" + TIME_UP + "\n</think>\n\n") for i in cut], 24)
                    for i, x in zip(cut, g):
                        got[i] = r.text(x)
                row[f"b{b}"] = acc(got)
        res[name] = row
        print(name, json.dumps(row), f"{time.time() - t0:.0f}s", flush=True)
        for i in range(a.show):
            print("   ", repr(its[i][2]["q"][-80:]), "gold", repr(gold[i]), "off", repr(off[i]), "think", repr(r.text(full[i])))
    if a.out:
        json.dump(res, open(a.out, "w"), indent=1)
    print("\n" + table(res))


if __name__ == "__main__":
    main()
