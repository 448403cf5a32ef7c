"""Trains the tiny hybrid reasoner on CPU over a fixed number of tokens.

  python train.py --out RUN --tokens 48e6            (RUN gets tokenizer.json, ckpt.pt, log.txt and hf/)
  python train.py --out RUN --tokens 48e6 --resume   goes on where a stopped run was
"""
import argparse
import json
import math
import multiprocessing as mp
import os
import time

import torch

from batches import loader
from export import export
from model import Qwen3, config
from tokens import train_tokenizer


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True)
    p.add_argument("--tokens", type=float, default=48e6)
    p.add_argument("--minutes", type=float, default=1e9, help="stop then, to be resumed")
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--hidden", type=int, default=128)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--kv", type=int, default=2)
    p.add_argument("--inter", type=int, default=384)
    p.add_argument("--vocab", type=int, default=640)
    p.add_argument("--budget", type=int, default=2048, help="padded tokens in a micro-batch")
    p.add_argument("--accum", type=int, default=2, help="micro-batches in a step")
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--no-compile", action="store_true")
    p.add_argument("--resume", action="store_true")
    return p.parse_args()


def part(step, frac):
    """Share of the full learning rate: a short warm-up, then half a cosine down to 2 %."""
    return min(1.0, (step + 1) / 150) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * frac)))


class Run:
    """A model, its optimiser and how far they are: what a checkpoint holds."""

    def __init__(self, a):
        self.out, self.tokenizer = a.out, a.out + "/tokenizer.json"
        os.makedirs(a.out, exist_ok=True)
        if not os.path.exists(self.tokenizer):
            train_tokenizer(self.tokenizer, a.vocab)
        self.cfg = config(a.vocab, a.hidden, a.layers, a.heads, a.kv, 32, a.inter)
        self.model, self.lr = Qwen3(self.cfg), a.lr
        groups = [dict(params=[v for v in self.model.parameters() if v.dim() > 1], weight_decay=0.1),
                  dict(params=[v for v in self.model.parameters() if v.dim() <= 1], weight_decay=0.0)]
        self.opt = torch.optim.AdamW(groups, lr=a.lr, betas=(0.9, 0.95), fused=True)
        self.step, self.tokens, self.trained = 0, 0, 0
        if a.resume:
            ck = torch.load(a.out + "/ckpt.pt", weights_only=False)
            self.model.load_state_dict(ck["model"])
            self.opt.load_state_dict(ck["opt"])
            self.step, self.tokens, self.trained = ck["step"], ck["tokens"], ck["trained"]

    def save(self):
        torch.save(dict(model=self.model.state_dict(), opt=self.opt.state_dict(), step=self.step, tokens=self.tokens,
                        trained=self.trained), self.out + "/ckpt.tmp")
        os.replace(self.out + "/ckpt.tmp", self.out + "/ckpt.pt")
        export(self.model, self.cfg, self.out + "/hf", self.tokenizer)

    def update(self, batches, loss, share):
        """One step over some batches; gives the sum of the weighted losses and of the weights."""
        for g in self.opt.param_groups:
            g["lr"] = self.lr * share
        weight, total = sum(float(b[3].sum()) for b in batches), 0.0
        for x, keep, y, wt, n in batches:
            l = loss(x, keep, y, wt) / weight
            l.backward()
            total += l.item() * weight
            self.tokens += n
            self.trained += len(keep)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        self.model.zero_grad()
        self.step += 1
        return total, weight


def main():
    a = arguments()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    run = Run(a)
    progress, q = mp.Value("d", run.tokens / a.tokens), mp.Queue(maxsize=256)
    drawing = mp.Process(target=loader, args=(q, progress, a.out, a.seed * 1000 + run.step, a.budget, 2048), daemon=True)
    drawing.start()
    body = None if a.no_compile else torch.compile(run.model.forward, dynamic=True)

    def loss(x, keep, y, wt):  # a single row goes uncompiled: it would only cause a recompilation
        return run.model.loss(*map(torch.from_numpy, (x, keep, y, wt)), body=body if len(x) > 1 else None)

    for _ in range(6):  # compile before the clock starts
        loss(*q.get()[:4]).backward()
    run.model.zero_grad()
    start = last = saved = time.time()
    total, weight, before = 0.0, 0.0, run.tokens
    print(f"{sum(v.numel() for v in run.model.parameters())} parameters", flush=True)
    while run.tokens < a.tokens and time.time() - start < a.minutes * 60:
        progress.value = run.tokens / a.tokens
        share = part(run.step, progress.value)
        t, w = run.update([q.get() for _ in range(a.accum)], loss, share)
        total, weight = total + t, weight + w
        if run.step % 50 == 0:
            now = time.time()
            line = json.dumps(dict(step=run.step, frac=round(progress.value, 3), loss=round(total / weight, 4), lr=round(a.lr * share, 5), tokens=run.tokens,
                                   trained=run.trained, tok_s=int((run.tokens - before) / (now - last)), queue=q.qsize()))
            print(line, flush=True)
            with open(a.out + "/log.txt", "a") as log:
                log.write(line + "\n")
            total, weight, last, before = 0.0, 0.0, now, run.tokens
            if now - saved > 150:
                run.save()
                saved = now
    run.save()
    drawing.terminate()
    print(f"done: {run.step} steps, {run.tokens} tokens, {run.trained} trained", flush=True)


if __name__ == "__main__":
    main()
