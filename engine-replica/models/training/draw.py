"""What every task draws with: numbers, words and the split into training and held-out items."""
import zlib

from words import CODA, ONSET, VOWEL, WORDS


def held_out(key):
    """One key in sixteen never occurs in training; evaluation uses only those."""
    return zlib.crc32(key.encode()) % 16 == 0


def nd(r, lo, hi):
    """A number with lo..hi digits."""
    k = r.randint(lo, hi)
    return r.randint(10 ** (k - 1) if k > 1 else 1, 10 ** k - 1)


def word(r, lo=3, hi=9):
    while True:
        w = r.choice(WORDS) if r.random() < 0.35 else "".join(
            r.choice(ONSET) + r.choice(VOWEL) + r.choice(CODA) for _ in range(r.randint(1, 4)))
        if lo <= len(w) <= hi:
            return w


def ask(r, e, forms=None):
    forms = forms or ["What is {}?", "{}", "{} =", "Compute {}.", "Calculate {}.", "How much is {}?", "Please work out {}.", "{}?",
                      "Tell me {}.", "Can you compute {}?"]
    return r.choice(forms).format(e)


def easy(q, think, a, key=None, **kw):
    return dict(q=q, think=think, a=a, key=key, **kw)
