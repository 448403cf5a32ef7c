"""A sentence encoder in numpy: all-MiniLM-L6-v2, read from its safetensors file. Slow and plain; used for training only."""

import json
import re
import struct
from pathlib import Path

import numpy as np
from scipy.special import erf

LAYERS, HEADS, WIDTH = 6, 12, 384
BATCH = 128


def safetensors(path):
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    body = memoryview(data)[8 + length :]
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            start, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(body[start:end], np.float32).reshape(entry["shape"])
    return tensors


class MiniLm:
    def __init__(self, folder):
        self.weights = safetensors(Path(folder) / "model.safetensors")
        self.vocabulary = (Path(folder) / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self.vocabulary = [token for token in self.vocabulary if token]
        self.ids = {token: index for index, token in enumerate(self.vocabulary)}

    def _linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def _norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return x * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def hidden(self, ids):
        """[sentences, tokens] of equal length, [CLS] and [SEP] included -> [sentences, tokens, WIDTH]."""
        w = self.weights
        n, t = ids.shape
        x = (
            w["embeddings.word_embeddings.weight"][ids]
            + w["embeddings.position_embeddings.weight"][:t]
            + w["embeddings.token_type_embeddings.weight"][0]
        )
        x = self._norm(x, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            part = lambda name: (
                self._linear(x, at + "attention.self." + name)
                .reshape(n, t, HEADS, WIDTH // HEADS)
                .transpose(0, 2, 1, 3)
            )
            q, k, v = part("query"), part("key"), part("value")
            scores = q @ k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(WIDTH // HEADS))
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            mixed = (scores @ v).transpose(0, 2, 1, 3).reshape(n, t, WIDTH)
            x = self._norm(x + self._linear(mixed, at + "attention.output.dense"), at + "attention.output.LayerNorm")
            h = self._linear(x, at + "intermediate.dense")
            h = (0.5 * h * (1 + erf(h / np.float32(np.sqrt(2))))).astype(np.float32)
            x = self._norm(x + self._linear(h, at + "output.dense"), at + "output.LayerNorm")
        return x

    def words(self, most):
        """The most frequent whole words of the vocabulary, which lists them in that order: two Latin letters or more."""
        word = re.compile("[a-z]{2,}")
        return [token for token in self.vocabulary if word.fullmatch(token)][:most]

    def static_table(self, words):
        """One vector per word: the mean over [CLS] word [SEP], as the encoder sees the word alone."""
        cls, sep = self.ids["[CLS]"], self.ids["[SEP]"]
        parts = []
        for start in range(0, len(words), BATCH):
            ids = np.array([self.ids[word] for word in words[start : start + BATCH]])
            triple = np.stack([np.full_like(ids, cls), ids, np.full_like(ids, sep)], 1)
            parts.append(self.hidden(triple).mean(1))
            if start % (8 * BATCH) == 0:
                print(f"static table: {start} of {len(words)} words", flush=True)
        return np.concatenate(parts)
