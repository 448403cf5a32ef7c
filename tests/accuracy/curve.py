"""The curve of accuracy against budget, as a table and as an SVG drawn here."""

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 150, 24, 48
COLOURS = {"hard": "#c2410c", "easy": "#1d4ed8"}
PERCENT_STEPS = (0, 25, 50, 75, 100)


def name(budget):
    return "none" if budget is None else str(budget)


def summary(items, told):
    """{kind: [(share right, mean reasoning tokens) for each column]}; `told` holds for each item its scores in the columns' order.

    Means are over tasks, as in the other table.
    """
    tasks = {}
    for item, scores in zip(items, told):
        tasks.setdefault((item["hard"], item["task"]), []).append(scores)
    kinds = {"hard": [], "easy": []}
    for (hard, _), rows in tasks.items():
        columns = [[sum(score[figure] for score in column) / len(column) for figure in (0, 1)] for column in zip(*rows)]
        kinds["hard" if hard else "easy"].append(columns)
    return {kind: [tuple(sum(figures) / len(figures) for figures in zip(*column)) for column in zip(*of_tasks)]
            for kind, of_tasks in kinds.items() if of_tasks}


def table(budgets, found):
    """A row a budget, and before them the lane that does not think."""
    kinds = list(found)
    out = ["| budget |" + "".join(f" {kind}: right | {kind}: reasoning tokens |" for kind in kinds), "|---|" + "--:|--:|" * len(kinds)]
    for at, label in enumerate(["no think", *map(name, budgets)]):
        cells = (f" {found[kind][at][0]:.0%} | {found[kind][at][1]:.1f} |" for kind in kinds)
        out.append(f"| {label} |" + "".join(cells))
    return "\n".join(out)


def svg(budgets, found, title):
    """The budgets stand at even distances; the lane that does not think is a dashed line."""
    step = (WIDTH - LEFT - RIGHT) / max(1, len(budgets) - 1)
    across = [LEFT + step * at for at in range(len(budgets))]

    def up(share):
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif" font-size="12">',
           f"<title>{title}</title>", f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    for percent in PERCENT_STEPS:
        y = up(percent / 100)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#444">{percent} %</text>')
    for x, budget in zip(across, budgets):
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#444">{name(budget)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text x="{middle:.1f}" y="{HEIGHT - 10}" text-anchor="middle" fill="#444">thinking_token_budget (tokens)</text>')
    labels = []
    for kind, columns in found.items():
        colour = COLOURS[kind]
        off, thinking = columns[0][0], [share for share, _ in columns[1:]]
        points = [(x, up(share)) for x, share in zip(across, thinking)]
        out.append(f'<path d="M{LEFT} {up(off):.1f}H{WIDTH - RIGHT}" stroke="{colour}" stroke-dasharray="4 4"/>')
        out.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        labels += [(points[-1][1], f"{kind} tasks", colour), (up(off), f"{kind}, no think", colour)]
    for y, text, colour in spread(labels):
        out.append(f'<text x="{WIDTH - RIGHT + 8}" y="{y + 4:.1f}" fill="{colour}">{text}</text>')
    return "\n".join([*out, "</svg>", ""])


def spread(labels, apart=14):
    """Labels from the top down, moved so that none covers another."""
    out, least = [], 0
    for y, text, colour in sorted(labels):
        y = max(y, least)
        least = y + apart
        out.append((y, text, colour))
    return out
