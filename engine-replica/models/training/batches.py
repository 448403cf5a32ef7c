"""A process of its own that draws examples, packs those of like length into batches and queues them."""
import os
import random

import numpy as np
from tokenizers import Tokenizer

from stream import Stream
from tokens import encode_example, random_copy


def loader(q, progress, out, seed, budget, ctx):
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tok = Tokenizer.from_file(out + "/tokenizer.json")
    s, r = Stream(seed), random.Random(seed + 1)
    pad = tok.token_to_id("<|endoftext|>")
    while True:
        lv = progress.value / 0.4  # the curriculum: short forms below 0.3, very long contexts from 1.0, extra copying below 1.5
        ex = []
        for _ in range(1200):
            if lv < 0.5 and r.random() < 0.04:
                ids, tgt = random_copy(r, 300)
            else:
                segs, _ = s.example(lv)
                ids, tgt = encode_example(tok, segs, r)
            if len(ids) <= ctx:
                ex.append((ids, tgt))
        ex.sort(key=lambda e: len(e[0]) + r.random() * 8)
        batches, cur, width = [], [], 0
        for e in ex + [None]:
            w = width if e is None else max(width, len(e[0]))
            if cur and (e is None or (len(cur) + 1) * w > budget):
                t = -(-width // 8) * 8
                x = np.full((len(cur), t), pad, np.int64)
                y = np.full((len(cur), t), -100, np.int64)
                wt = np.zeros((len(cur), t), np.float32)
                for i, (a, b) in enumerate(cur):
                    x[i, :len(a)] = a
                    y[i, :len(b) - 1] = b[1:]
                    n = max(1, sum(v >= 0 for v in b))
                    wt[i] = min(3.0, max(0.5, (30 / n) ** 0.5))
                keep = (y.ravel() >= 0).nonzero()[0]
                batches.append((x, keep, y.ravel()[keep], wt.ravel()[keep], sum(len(a) for a, _ in cur)))
                cur, width = [], 0
            if e is not None:
                cur.append(e)
                width = max(width, len(e[0]))
        r.shuffle(batches)
        for b in batches:
            q.put(b)
