"""The engine benchmark's figures as Markdown.

A figure is (measure, prompt tokens, streams) -> value.
"""

from statistics import median
from typing import NamedTuple

# Measure -> (what the reader is told, unit, whether more is better)
MEASURES = {
    "prefill": ("prefill of {prompt:,} tokens", "tok/s", True),
    "decode": ("decode after {prompt:,} tokens, {streams} {stream_word}", "tok/s together", True),
    "ttft_cold": ("first token of {prompt:,} new tokens", "ms", False),
    "ttft_warm": ("first token of {prompt:,} tokens asked before", "ms", False),
}


# A round during which others used more of the machine than this is left out where there are better ones: a
# program whose threads wait for each other by spinning loses far more than the share that is taken from it.
OTHERS_SHARE_MAX = 0.05


class Run(NamedTuple):
    """One run of one system."""

    figures: dict
    # Share of the machine that other work used meanwhile.
    others: float


class Round(NamedTuple):
    """A run of each system, one after the other; None for one that was left out."""

    peer: Run | None
    own: Run | None


def calm(rounds):
    """The rounds that other work left alone, or all where there are none."""
    quiet = [pair for pair in rounds if all(run.others <= OTHERS_SHARE_MAX for run in pair if run)]
    return quiet or rounds


def render(peer_name, rounds):
    """The table: medians and ranges of both systems, and how many times as fast the replica is."""
    peer, own = ([run.figures if run else {} for run in runs] for runs in zip(*rounds))
    lines = [f"| measure | unit | {peer_name} | engine-replica | times as fast |", "| --- | --- | --- | --- | --- |"]
    order = list(MEASURES)
    keys = {key for run in [*peer, *own] for key in run}
    for key in sorted(keys, key=lambda key: (order.index(key[0]), key[1:])):
        measure, prompt, streams = key
        text, unit, more_is_better = MEASURES[measure]
        text = text.format(prompt=prompt, streams=streams, stream_word="stream" if streams == 1 else "streams")
        ratio = times_as_fast(peer, own, key, more_is_better)
        cells = [text, unit, cell(peer, key), cell(own, key), "–" if ratio is None else f"{ratio:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(runs, key):
    """Median and range over the runs."""
    values = [run[key] for run in runs if key in run]
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:,.1f}"
    return f"{median(values):,.1f} ({min(values):,.1f}–{max(values):,.1f})"


def times_as_fast(peer, own, key, more_is_better):
    """The median of the rounds' ratios: what slows the machine for a while slows both."""
    pairs = [(mine[key], theirs[key]) for theirs, mine in zip(peer, own) if key in theirs and key in mine]
    ratios = [mine / theirs if more_is_better else theirs / mine for mine, theirs in pairs if mine > 0 and theirs > 0]
    return median(ratios) if ratios else None
