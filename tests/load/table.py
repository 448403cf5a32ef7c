"""The gateway benchmark's measurements as Markdown."""

from statistics import median

SYSTEMS = ["direct", "nginx", "gateway", "smg", "sglang", "vllm", "vllm-sticky"]
# Mode -> the unit that its CPU time is given for: (name, key of the count, units of that count)
UNITS = {
    "small": ("request", "requests", 1),
    "small-c1": ("request", "requests", 1),
    "large": ("request", "requests", 1),
    "stream": ("100 chunks", "events", 100),
    "paced": ("100 chunks", "events", 100),
}
# Mode -> the time that is compared with `direct`. Only where the system is idle most of the time: at full load
# a closed loop's latency says no more than its throughput.
ADDED = {"small-c1": ("p50", "latency_us"), "paced": ("first byte p50", "first_byte_us")}
# A measurement during which others used more of the machine than this is left out where there are better ones.
OTHERS_SHARE_MAX = 0.05


def cost(row):
    """The proxy's CPU time per unit, in microseconds."""
    _, count, size = UNITS[row["mode"]]
    return row["proxy_cpu_s"] * 1e6 / max(row[count] / size, 1e-9)


def render(rows):
    """One table for each mode that was measured, and a warning where one holds disturbed measurements."""
    parts = [render_mode(mode, rows) for mode in UNITS if any(row["mode"] == mode for row in rows)]
    cells = {(row["mode"], row["system"]) for row in rows}
    shown = [row for mode, system in cells
             for row in quiet([row for row in rows if (row["mode"], row["system"]) == (mode, system)])]
    if any(row["others"] > OTHERS_SHARE_MAX for row in shown):
        parts.append("Other work disturbed some of these (column `others`): measure again on a quiet machine before "
                     "anything is concluded from them.")
    return "\n\n".join(parts)


def render_mode(mode, rows):
    """One mode's table: a line for each system."""
    rows = [row for row in rows if row["mode"] == mode]
    unit = UNITS[mode][0]
    added = f"added {ADDED[mode][0]} µs" if mode in ADDED else None
    heads = ["system", f"CPU µs per {unit}: median (range)", "ratio to nginx", added, "requests/s", "p50 µs", "p99 µs",
             "RSS MB", "prompt tokens cached" if mode == "large" else None, "errors", "rounds", "others"]
    lines = [heads, ["---" if head else None for head in heads]]
    for system in SYSTEMS:
        mine = quiet([row for row in rows if row["system"] == system])
        if mine:
            lines.append(line(mode, system, mine, rows))
    body = "\n".join("| " + " | ".join(cell for cell in cells if cell is not None) + " |" for cells in lines)
    return f"**{mode}**\n\n{body}"


def line(mode, system, mine, rows):
    """One system's cells; None where the mode has no such column."""
    proxied = system != "direct"
    costs = [cost(row) for row in mine]
    ratio = compare(rows, system, "nginx", lambda own, other: cost(own) / max(cost(other), 1e-9)) if proxied else None
    added = None
    if mode in ADDED:
        key = ADDED[mode][1]
        gap = compare(rows, system, "direct", lambda own, other: own[key]["p50"] - other[key]["p50"])
        added = show(gap if proxied else None, ",.0f")
    prompt = sum(row["prompt_tokens"] for row in mine)
    cached = f"{sum(row['cached_tokens'] for row in mine) / max(prompt, 1):.0%}" if mode == "large" else None
    middle = lambda value: f"{median(value(row) for row in mine):,.0f}"
    return [
        system,
        f"{median(costs):,.1f} ({min(costs):,.1f}–{max(costs):,.1f})" if proxied else "–",
        show(ratio, ".2f"),
        added,
        middle(lambda row: row["requests_per_s"]),
        middle(lambda row: row["latency_us"]["p50"]),
        middle(lambda row: row["latency_us"]["p99"]),
        middle(lambda row: row["rss_mb"]) if proxied else "–",
        cached,
        str(sum(row["errors"] + row["errors_outside"] for row in mine)),
        str(len(mine)),
        f"{max(row['others'] for row in mine):.0%}",
    ]


def quiet(rows):
    """The rows that other work left alone, or all where there are none; the last column shows which."""
    return [row for row in rows if row["others"] <= OTHERS_SHARE_MAX] or rows


def compare(rows, system, base, value):
    """The median over the rounds of `value(system's row, base's row of the same round)`: what slows the machine for
    a while slows both. Rounds in which both were quiet, where there are any. None without such a round."""
    pairs = []
    for own in (row for row in rows if row["system"] == system):
        partners = [row for row in rows if row["system"] == base and row["round"] == own["round"]]
        pairs += [(own, other) for other in partners]
    calm = [pair for pair in pairs if max(row["others"] for row in pair) <= OTHERS_SHARE_MAX]
    values = [value(own, other) for own, other in calm or pairs]
    return median(values) if values else None


def show(value, form):
    """A number, or a dash where there is none."""
    return "–" if value is None else format(value, form)
