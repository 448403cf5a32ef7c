"""Questions over facts planted in the context, near and far: the answers can only be looked up."""
from draw import easy, nd, word
from words import ANIMALS, CITIES, COLORS, FILLER, ITEMS, JOBS, NAMES, PLACES


def fact(r, code=False):
    """(subject, sentence, question, answer); digits are drawn afresh, so that answers must be looked up."""
    k = 0 if code else r.randrange(8)
    n, it, pl, c = r.choice(NAMES), r.choice(ITEMS), r.choice(PLACES), r.choice(COLORS)
    if k == 0:
        v = str(nd(r, 3, 5))
        return ("code " + pl, f"The code for the {pl} is {v}.", r.choice([f"What is the code for the {pl}?", f"Which code opens the {pl}?"]), v)
    if k == 1:
        return ("where " + it, f"The {it} is in the {pl}.", r.choice([f"Where is the {it}?", f"In which room is the {it}?"]), f"In the {pl}.")
    if k == 2:
        return ("col " + n, f"{n}'s favorite color is {c}.", r.choice([f"What is {n}'s favorite color?", f"Which color does {n} like best?"]), c)
    if k == 3:
        v = str(r.randint(5, 95))
        return ("age " + n, f"{n} is {v} years old.", r.choice([f"How old is {n}?", f"What is {n}'s age?"]), v)
    if k == 4:
        v = r.choice(CITIES)
        return ("city " + n, f"{n} lives in {v}.", r.choice([f"Where does {n} live?", f"In which city does {n} live?"]), v)
    if k == 5:
        v = r.choice(ANIMALS)
        return ("pet " + n, f"{n} has a {v}.", r.choice([f"What pet does {n} have?", f"Which animal does {n} have?"]), v)
    if k == 6:
        v = r.choice(JOBS)
        return ("job " + n, f"{n} is a {v}.", r.choice([f"What is {n}'s job?", f"What does {n} do for a living?"]), v)
    v = word(r, 4, 7)
    return ("pw", f"The password is {v}.", r.choice(["What is the password?", "Tell me the password."]), v)


def t_fact(r, lv, n_facts=None, n_fill=None):
    k = n_facts or r.randint(1, 5)
    fs = {}
    while len(fs) < k:
        s, t, q, a = fact(r)
        fs.setdefault(s, (t, q, a))
    fs = list(fs.values())
    t, q, a = r.choice(fs)
    text = [f[0] for f in fs] + [r.choice(FILLER) for _ in range(n_fill if n_fill is not None else r.randint(0, 3))]
    r.shuffle(text)
    ctx = " ".join(text)
    d = easy("", "Look it up.", a, f"fact {t}")
    u = r.random()
    if u < 0.4:
        d["q"] = ctx + r.choice([" ", "\n"]) + q
    elif u < 0.6:
        d["q"] = f"{q} {ctx}"
    elif u < 0.8:
        d["q"], d["system"] = q, ctx
    else:
        d["q"], d["history"] = q, [(ctx, "Noted.")]
    return d


def t_facts(r, lv):
    """Several questions over one context, answered line by line: one reading trains several look-ups."""
    k = r.randint(2, 7)
    fs = {}
    while len(fs) < k:
        s, t, q, a = fact(r)
        fs.setdefault(s, (t, q, a))
    fs = list(fs.values())
    text = [f[0] for f in fs] + [r.choice(FILLER) for _ in range(r.randint(0, 6 if lv < 0.6 else 30))]
    r.shuffle(text)
    asked = r.sample(fs, r.randint(2, min(k, 5)))
    d = easy("", "Look them up.", "\n".join(a for _, _, a in asked), "facts " + asked[0][0])
    qs, ctx = " ".join(q for _, q, _ in asked), " ".join(text)
    if r.random() < 0.3:
        d["q"], d["system"] = qs, ctx
    else:
        d["q"] = ctx + r.choice([" ", "\n"]) + qs
    return d


def t_far(r, lv, lo=10, hi=34):
    return t_fact(r, lv, r.randint(3, 8), r.randint(lo, hi))


def t_vfar(r, lv):
    return t_far(r, lv, 60, 120)
