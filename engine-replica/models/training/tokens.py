"""From text to token ids and back: the tokenizer and what of an example is trained on."""
import re

from hard import CH
from stream import Stream

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>",
           "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
LETTER = {}


def encode(tok, text):
    ids = []
    for i, part in enumerate(text.split(CH)):
        if i % 2:
            for ch in part:
                if ch not in LETTER:
                    LETTER[ch] = tok.encode(ch, add_special_tokens=False).ids
                ids += LETTER[ch]
        elif part:
            ids += tok.encode(part, add_special_tokens=False).ids
    return ids


def random_copy(r, n):
    """A random token sequence twice, the second time trained: the quickest way to the heads that copy."""
    ids = [r.randrange(n) for _ in range(r.randint(8, 40))]
    k = r.randint(0, 4)
    mid = [r.randrange(n) for _ in range(k)]
    return ids + mid + ids, [-100] * (len(ids) + k + 1) + ids[1:]


def encode_example(tok, segs, r):
    ids, tgt = [], []
    for text, flag in segs:
        t = encode(tok, text)
        if flag == "cut":  # half of the cuts at budgets of up to 32 tokens, where an answer is hardest
            most = max(len(t) - 1, 0)
            t = t[:r.randint(0, min(most, 32) if r.random() < 0.5 else most)]
        ids += t
        tgt += t if flag else [-100] * len(t)
    return ids, tgt


QWEN_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def train_tokenizer(path, vocab=640, n=30000, seed=1):
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN_SPLIT), "isolated"),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    s = Stream(seed)
    texts = []
    for _ in range(n):
        segs, name = s.example()
        t = "".join(x for x, _ in segs)
        if name in ("count", "reverse", "vfar"):
            continue
        texts += [p for p in re.split("|".join(map(re.escape, SPECIAL)), re.sub(CH + ".*?" + CH, "", t)) if p]
    tr = trainers.BpeTrainer(vocab_size=vocab - len(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tok.train_from_iterator(texts, tr)
    tok.add_special_tokens([AddedToken(x, special=True, normalized=False) for x in SPECIAL[:3]])
    tok.add_tokens([AddedToken(x, special=False, normalized=False) for x in SPECIAL[3:]])
    tok.save(path)
    return tok
