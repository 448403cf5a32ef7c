"""Scratchpads for sums: one digit a line, with the carry and what has been written so far."""


def sp_add(a, b):
    n = max(len(str(a)), len(str(b)))
    x, y = str(a).zfill(n), str(b).zfill(n)
    out, run, c = [f"{x}+{y}"], "", 0
    for i in range(n - 1, -1, -1):
        s = int(x[i]) + int(y[i]) + c
        run = (str(s) if i == 0 else str(s % 10)) + run
        out.append(f"{x[i]}+{y[i]}+{c}={s:02d}:{run}")
        c = s // 10
    return "\n".join(out)


def sp_sub(a, b):
    n = len(str(a))
    x, y = str(a), str(b).zfill(n)
    out, run, c = [f"{x}-{y}"], "", 0
    for i in range(n - 1, -1, -1):
        s = int(x[i]) - int(y[i]) - c
        d, nc = s % 10, int(s < 0)
        run = str(d) + run
        out.append(f"{x[i]}-{y[i]}-{c}={nc}{d}:{run}")
        c = nc
    return "\n".join(out)


def sp_mul1(a, d):
    """a times one digit."""
    x = str(a)
    out, run, c = [f"{a}*{d}"], "", 0
    for i in range(len(x) - 1, -1, -1):
        s = int(x[i]) * d + c
        run = (str(s) if i == 0 else str(s % 10)) + run
        out.append(f"{x[i]}*{d}+{c}={s:02d}:{run}")
        c = s // 10
    return "\n".join(out)


def sp_mul(a, b):
    if b < 10:
        return sp_mul1(a, b)
    hi, lo = b // 10, b % 10
    return sp_mul1(a, lo) + "\n" + sp_mul1(a, hi) + "\n" + sp_add(a * lo, a * hi * 10)
