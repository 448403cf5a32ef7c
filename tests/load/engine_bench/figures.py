"""The engine benchmark's figures as Markdown.

A figure is (measure, prompt tokens, streams) -> value; a run of one system is a dictionary of figures.
"""

from statistics import median

# Measure -> (what the reader is told, unit, whether more is better)
MEASURES = {
    "prefill": ("prefill of {prompt:,} tokens", "tok/s", True),
    "decode": ("decode after {prompt:,} tokens, {streams} {stream_word}", "tok/s together", True),
    "ttft_cold": ("first token of {prompt:,} new tokens", "ms", False),
    "ttft_warm": ("first token of {prompt:,} tokens asked before", "ms", False),
}


def render(peer_name, peer_runs, own_runs):
    """The table: medians and ranges of both systems, and how many times as fast the replica is."""
    keys = {key for run in [*peer_runs, *own_runs] for key in run}
    lines = [f"| measure | unit | {peer_name} | engine-replica | times as fast |", "| --- | --- | --- | --- | --- |"]
    order = list(MEASURES)
    for key in sorted(keys, key=lambda key: (order.index(key[0]), key[1:])):
        measure, prompt, streams = key
        text, unit, more_is_better = MEASURES[measure]
        text = text.format(prompt=prompt, streams=streams, stream_word="stream" if streams == 1 else "streams")
        ratio = times_as_fast(peer_runs, own_runs, key, more_is_better)
        cells = [text, unit, cell(peer_runs, key), cell(own_runs, key), "–" if ratio is None else f"{ratio:.2f}"]
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


def times_as_fast(peer_runs, own_runs, key, more_is_better):
    """The median of the ratios of runs that followed each other: what slows the machine for a while slows both."""
    pairs = [(own[key], peer[key]) for peer, own in zip(peer_runs, own_runs) if key in peer and key in own]
    ratios = [own / peer if more_is_better else peer / own for own, peer in pairs if own > 0 and peer > 0]
    return median(ratios) if ratios else None
