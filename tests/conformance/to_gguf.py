"""Writes the default model's folder as one GGUF file, for servers that read nothing else.

  python to_gguf.py FOLDER FILE        (needs the PyPI package `gguf`)

Weights keep their bf16 bits; vectors become f32, as llama.cpp wants them.
"""
import json
import pathlib
import sys

import gguf
import numpy as np

NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def tensors(path):
    """(name, shape, bf16 bits) of each tensor of a safetensors file."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    for name, t in json.loads(raw[8:start]).items():
        if name != "__metadata__":
            assert t["dtype"] == "BF16", (name, t["dtype"])
            a, b = t["data_offsets"]
            yield name, t["shape"], np.frombuffer(raw[start + a:start + b], np.uint16)


def renamed(name):
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    layer, rest = name.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{NAMES[rest.removesuffix('.weight')]}.weight"


def main(folder, file):
    folder = pathlib.Path(folder)
    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    template = json.loads((folder / "tokenizer_config.json").read_text())["chat_template"]
    w = gguf.GGUFWriter(file, "qwen3")
    w.add_name("abacus")
    w.add_block_count(config["num_hidden_layers"])
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(config["num_attention_heads"])
    w.add_head_count_kv(config["num_key_value_heads"])
    w.add_key_length(config["head_dim"])
    w.add_value_length(config["head_dim"])
    w.add_rope_freq_base(config["rope_theta"])
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    ids = {i: t for t, i in tokenizer["model"]["vocab"].items()}
    kinds = {i: gguf.TokenType.NORMAL for i in ids}
    for t in tokenizer["added_tokens"]:
        ids[t["id"]] = t["content"]
        kinds[t["id"]] = gguf.TokenType.CONTROL if t["special"] else gguf.TokenType.USER_DEFINED
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list([ids[i] for i in range(config["vocab_size"])])
    w.add_token_types([kinds[i] for i in range(config["vocab_size"])])
    w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]])
    w.add_eos_token_id(config["eos_token_id"])
    w.add_pad_token_id(config["pad_token_id"])
    w.add_add_bos_token(False)
    w.add_chat_template(template)
    for name, shape, bits in tensors(folder / "model.safetensors"):
        if len(shape) == 1:
            w.add_tensor(renamed(name), (bits.astype(np.uint32) << 16).view(np.float32))
        else:
            w.add_tensor(renamed(name), bits.view(np.uint8).reshape(shape[0], 2 * shape[1]), raw_dtype=gguf.GGMLQuantizationType.BF16)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
