"""Hard tasks: a scratchpad finds the answer, a glance seldom does.

Every task takes (rng, level 0..1) and returns a dict:
  q     the user's words          think  the scratchpad          a      the answer
  key   identity for the held-out split (None: too few variants to hold any out)
Text between two CH marks is encoded letter by letter (so that spelling never has to go through merges).
"""
from draw import ask, nd, word
from scratchpads import sp_add, sp_mul, sp_mul1, sp_sub
from words import DAYS

CH = "\x01"


def op(r, a, o, b):
    s = r.choice(["", " "])
    if o == "*":
        o = r.choice(["*", "*", "*", " x ", " times "])
        if len(o) > 1:
            return f"{a}{o}{b}"
    elif r.random() < 0.1:
        return f"{a} {'plus' if o == '+' else 'minus'} {b}"
    return f"{a}{s}{o}{s}{b}"


def t_add(r, lv):
    hi = 3 if lv < 0.3 else 6
    lo = 1 if lv < 0.3 else (2 if r.random() < 0.2 else 3)
    a, b = nd(r, lo, hi), nd(r, lo, hi)
    return dict(q=ask(r, op(r, a, "+", b)), think=sp_add(a, b), a=str(a + b), key=f"{a}+{b}")


def t_sub(r, lv):
    hi = 3 if lv < 0.3 else 6
    lo = 1 if lv < 0.3 else (2 if r.random() < 0.2 else 3)
    a, b = nd(r, lo, hi), nd(r, lo, hi)
    a, b = max(a, b), min(a, b)
    return dict(q=ask(r, op(r, a, "-", b)), think=sp_sub(a, b), a=str(a - b), key=f"{a}-{b}")


def t_mul1(r, lv):
    a, b = nd(r, 1, 3), r.randint(2, 9)
    return dict(q=ask(r, op(r, a, "*", b)), think=sp_mul(a, b), a=str(a * b), key=None if a < 10 else f"{a}*{b}")


def t_mul2(r, lv):
    a, b = nd(r, 2, 2), nd(r, 2, 2)
    return dict(q=ask(r, op(r, a, "*", b)), think=sp_mul(a, b), a=str(a * b), key=f"{a}*{b}")


def t_mul3(r, lv):
    a, b = nd(r, 3, 3), nd(r, 2, 2)
    return dict(q=ask(r, op(r, a, "*", b)), think=sp_mul(a, b), a=str(a * b), key=f"{a}*{b}")


def t_two(r, lv):
    a, b, c = nd(r, 1, 2), r.randint(2, 9), r.randint(2, 9)
    k = r.randrange(3)
    if k == 0:
        e, th, v = f"{a} + {b} * {c}", f"{b}*{c}={b * c}\n" + sp_add(a, b * c), a + b * c
    elif k == 1:
        e, th, v = f"({a} + {b}) * {c}", sp_add(a, b) + "\n" + sp_mul1(a + b, c), (a + b) * c
    else:
        a = a % (b * c)
        e, th, v = f"{b} * {c} - {a}", f"{b}*{c}={b * c}\n" + sp_sub(b * c, a), b * c - a
    return dict(q=ask(r, e if r.random() < 0.7 else e.replace(" ", "")), think=th, a=str(v), key=e)


def t_count(r, lv):
    w = word(r)
    c = r.choice(w) if r.random() < 0.85 else r.choice("abcdefghijklmnoprstuvw")
    # Each letter stands beside the wanted one, so that the comparison is one of neighbours.
    n, th = 0, ""
    for ch in w:
        n += ch == c
        th += f"{ch}{c}{'=' if ch == c else '/'}{n}"
    q = ask(r, None, [f'How many "{c}" are in "{w}"?', f"How many times does the letter {c} occur in {w}?",
                      f"How many {c}'s are in the word {w}?", f'Count the letter {c} in "{w}".'])
    return dict(q=q, think=CH + th + CH, a=str(n), key=f"count {w} {c}")


def t_reverse(r, lv):
    w = word(r, 3, 5 if lv < 0.3 else 9)
    th = "".join(f"{ch}{i + 1}" for i, ch in enumerate(w)) + "\n" + "".join(f"{len(w) - i}{ch}" for i, ch in enumerate(w[::-1]))
    q = ask(r, w, ["Reverse {}.", 'Reverse the word "{}".', "Spell {} backwards.", 'Write "{}" backwards.', "What is {} spelled backwards?"])
    return dict(q=q, think=th, a=CH + w[::-1] + CH, key=f"rev {w}")


def t_sort(r, lv):
    xs = [r.randint(1, 99) for _ in range(r.randint(3, 4) if lv < 0.3 else r.randint(4, 6))]
    left, out = list(xs), []
    while left:
        m = min(left)
        out.append(",".join(map(str, left)) + ":" + str(m))
        left.remove(m)
    q = ask(r, ", ".join(map(str, xs)) if r.random() < 0.7 else " ".join(map(str, xs)),
            ["Sort {}.", "Sort these numbers: {}", "Put in order: {}", "Order from small to large: {}", "Sort in ascending order: {}"])
    return dict(q=q, think="\n".join(out), a=", ".join(map(str, sorted(xs))), key="sort " + str(xs))


def t_compare(r, lv):
    while True:
        i = r.randint(0, 20)
        j = i if r.random() < 0.7 else r.randint(0, 20)
        f, g = str(r.randint(1, 99)), str(r.randint(1, 99))
        x, y = f"{i}.{f}", f"{j}.{g}"
        n = max(len(f), len(g))
        if float(x) != float(y):
            break
    f2, g2 = f.ljust(n, "0"), g.ljust(n, "0")
    big = r.random() < 0.5
    th = [f"{'bigger' if big else 'smaller'} {i}.{f2} {j}.{g2}"]
    for p, s in [(i, j)] + [(int(u), int(v)) for u, v in zip(f2, g2)]:
        th.append(f"{p}{'=' if p == s else '<' if p < s else '>'}{s}")
        if p != s:
            break
    v = x if (float(x) > float(y)) == big else y
    th.append(f"{'first' if v == x else 'second'} {v}")
    if big:
        q = ask(r, None, [f"Which is bigger, {x} or {y}?", f"Which number is larger: {x} or {y}?", f"Is {x} or {y} greater?", f"What is more, {x} or {y}?"])
    else:
        q = ask(r, None, [f"Which is smaller, {x} or {y}?", f"Which number is less: {x} or {y}?"])
    return dict(q=q, think="\n".join(th), a=v, key=f"cmp {x} {y}")


def t_day(r, lv):
    d, n = r.randrange(7), r.randint(1, 4 if lv < 0.3 else 12)
    th = "".join(f" {n - i} {DAYS[(d + i) % 7]}" for i in range(n + 1)).strip()
    q = ask(r, None, [f"What day is {n} days after {DAYS[d]}?", f"Today is {DAYS[d]}. What day is it in {n} days?"])
    return dict(q=q, think=th, a=DAYS[(d + n) % 7], key=None)


UNITS = [("hours", "minutes", 60), ("minutes", "seconds", 60), ("days", "hours", 24), ("weeks", "days", 7), ("years", "months", 12), ("feet", "inches", 12)]


def t_unit(r, lv):
    u, v, f = r.choice(UNITS)
    n = r.randint(2, 49)
    q = ask(r, None, [f"How many {v} are in {n} {u}?", f"Convert {n} {u} to {v}.", f"{n} {u} in {v}?"])
    return dict(q=q, think=sp_mul(n, f), a=str(n * f), key=f"unit {n} {u}")
