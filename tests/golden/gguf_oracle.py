"""SmolLM2's GGUF file read in plain numpy, for comparison with the Rust loader. Written from the format's description."""
import struct

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
BLOCK = 32


def read(path):
    """(metadata, {name: f32 array, outermost dimension first})"""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    at = 0

    def take(fmt):
        nonlocal at
        size = struct.calcsize("<" + fmt)
        out = struct.unpack("<" + fmt, data[at:at + size].tobytes())
        at += size
        return out

    def text():
        nonlocal at
        (n,) = take("Q")
        out = data[at:at + n].tobytes().decode()
        at += n
        return out

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            inner, n = take("IQ")
            return [value(inner) for _ in range(n)]
        return take(SCALARS[kind])[0]

    magic, version, tensors, entries = take("4sIQQ")
    assert magic == b"GGUF" and version == 3
    metadata = {}
    for _ in range(entries):
        key = text()
        metadata[key] = value(take("I")[0])
    infos = []
    for _ in range(tensors):
        name = text()
        dims = take("Q" * take("I")[0])
        infos.append((name, dims[::-1], *take("IQ")))
    at = -(-at // 32) * 32
    return metadata, {name: dequantise(data, at + offset, dims, kind) for name, dims, kind, offset in infos}


def dequantise(data, start, dims, kind):
    n = int(np.prod(dims))
    if kind == 0:
        return data[start:start + 4 * n].copy().view(np.float32).reshape(dims)
    size = {8: 34, 3: 20}[kind]
    blocks = data[start:start + n // BLOCK * size].copy().reshape(-1, size)
    d = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    if kind == 8:  # Q8_0: scale, 32 signed bytes
        return (d * blocks[:, 2:].copy().view(np.int8).astype(np.float32)).reshape(dims)
    # Q4_1: scale, minimum, 16 bytes with elements i (low half) and i + 16 (high half)
    m = blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
    nibbles = blocks[:, 4:]
    q = np.concatenate([nibbles & 15, nibbles >> 4], axis=1).astype(np.float32)
    return (d * q + m).reshape(dims)


def unpermute(weight, heads):
    """Undoes what the converter does to query and key rows, so that transformers' half-rotation fits."""
    rows, cols = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, cols).swapaxes(1, 2).reshape(rows, cols)


def hugging_face_state(metadata, tensors):
    """The tensors under transformers' names."""
    heads, kv_heads = metadata["llama.attention.head_count"], metadata["llama.attention.head_count_kv"]
    parts = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    state = {"model.embed_tokens.weight": tensors["token_embd.weight"], "model.norm.weight": tensors["output_norm.weight"],
             "lm_head.weight": tensors["token_embd.weight"]}
    for layer in range(metadata["llama.block_count"]):
        for part, name in parts.items():
            weight = tensors[f"blk.{layer}.{part}.weight"]
            if part == "attn_q":
                weight = unpermute(weight, heads)
            if part == "attn_k":
                weight = unpermute(weight, kv_heads)
            state[f"model.layers.{layer}.{name}.weight"] = weight
    return state
