"""Writes a model as a folder that transformers loads as it is (bf16)."""
import json
import os

import torch
from safetensors.torch import save_file

from template import chat_template


def export(model, cfg, out, tok_path):
    os.makedirs(out, exist_ok=True)
    save_file({k: v.detach().to(torch.bfloat16).contiguous() for k, v in model.state_dict().items()}, out + "/model.safetensors",
              metadata={"format": "pt"})
    tok = json.load(open(tok_path))
    ids = {t["content"]: t["id"] for t in tok["added_tokens"]}
    c = dict(cfg, torch_dtype="bfloat16", bos_token_id=None, eos_token_id=ids["<|im_end|>"], pad_token_id=ids["<|endoftext|>"])
    json.dump(c, open(out + "/config.json", "w"), indent=2)
    json.dump(dict(do_sample=False, eos_token_id=[ids["<|im_end|>"], ids["<|endoftext|>"]], pad_token_id=ids["<|endoftext|>"],
                   max_new_tokens=512), open(out + "/generation_config.json", "w"), indent=2)
    json.dump(tok, open(out + "/tokenizer.json", "w"), ensure_ascii=False)
    json.dump(dict(tokenizer_class="PreTrainedTokenizerFast", model_max_length=2048, clean_up_tokenization_spaces=False, add_bos_token=False,
                   bos_token=None, eos_token="<|im_end|>", pad_token="<|endoftext|>", unk_token=None, errors="replace", split_special_tokens=False,
                   added_tokens_decoder={str(t["id"]): {k: t[k] for k in ("content", "lstrip", "normalized", "rstrip", "single_word", "special")}
                                         for t in tok["added_tokens"]},
                   chat_template=chat_template()), open(out + "/tokenizer_config.json", "w"), indent=2, ensure_ascii=False)
