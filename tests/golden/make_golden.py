"""Makes the fixtures of this folder with transformers (and llama.cpp for SmolLM2's tokens) as the oracle. See README.md.

  python make_golden.py --smollm2 PATH.gguf --node FOLDER_WITH_node-llama-cpp
  python make_golden.py --only-abacus        after a change of the built-in model: neither of the two is needed
"""
import argparse
import copy
import datetime
import json
import pathlib
import subprocess

import torch
import transformers
from transformers.utils import chat_template_utils

import cases
import gguf_oracle

HERE = pathlib.Path(__file__).resolve().parent
ABACUS = HERE.parents[1] / "engine-replica/models/abacus"
NOW = 1_796_083_199  # 2026-11-30 23:59:59 UTC
TOP = 64  # largest logits kept of a wide vocabulary
STRIDE = 509  # and every 509th one of it besides, a prime so that no pattern hides
ROUTER_MARGIN_MIN = 1e-4  # least distance between the logits of the last expert chosen and the first that is not
MARGIN_MIN = 0.02  # least distance between the best two logits along a greedy text
SMOLLM2_ANSWERS, ABACUS_ANSWERS = 20, 24
SMOLLM2_TOKENS, ABACUS_TOKENS = 24, 160


def dump(name, value):
    """One line a case: small, and a change shows as the case that it is."""
    lines = [f"{json.dumps(key)}: " + ("[\n" + ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"
             if isinstance(rows, list) else json.dumps(rows, ensure_ascii=False)) for key, rows in value.items()]
    (HERE / name).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def short(x):
    return float(f"{x:.7g}")


# ---- templates ---------------------------------------------------------------------------------------------------

class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW, datetime.timezone.utc)


def render(template, messages, tools, generation_prompt, kwargs):
    try:
        rendered, _ = chat_template_utils.render_jinja_template(
            [copy.deepcopy(messages)], tools=copy.deepcopy(tools), chat_template=template,
            add_generation_prompt=generation_prompt, **kwargs)
        return {"text": rendered[0]}
    except Exception as error:
        return {"error": str(error)}


def template_fixtures(smollm2_template):
    chat_template_utils.datetime = FixedClock
    chat_template_utils._compile_jinja_template.cache_clear()
    (HERE / "templates/smollm2.jinja").write_text(smollm2_template)
    abacus = json.loads((ABACUS / "tokenizer_config.json").read_text())["chat_template"]
    (HERE / "templates/abacus.jinja").write_text(abacus)
    rows = []
    for path in sorted((HERE / "templates").glob("*.jinja")):
        for name, messages, more in cases.CONVERSATIONS:
            kwargs = dict(more)
            tools = kwargs.pop("tools", None)
            for generation_prompt in (True, False):
                special = {"bos_token": "<|begin|>", "eos_token": "<|im_end|>"}
                expect = render(path.read_text(), messages, tools, generation_prompt, {**special, **kwargs})
                rows.append({"template": path.name, "case": name, "messages": messages, "tools": tools or [], "kwargs": kwargs,
                             "add_generation_prompt": generation_prompt, **expect})
    dump("templates.json", {"now": NOW, "bos_token": "<|begin|>", "eos_token": "<|im_end|>", "rows": rows})


# ---- models ------------------------------------------------------------------------------------------------------

@torch.inference_mode()
def logits(model, ids):
    return model(input_ids=torch.tensor([ids])).logits[0].float()


@torch.inference_mode()
def greedy(model, prompt, limit, stop):
    """(tokens with the stop token, least margin between the best two logits)"""
    ids, past, out, margin = torch.tensor([prompt]), None, [], float("inf")
    while len(out) < limit:
        step = model(input_ids=ids, past_key_values=past, use_cache=True)
        past = step.past_key_values
        best = step.logits[0, -1].float().topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        out.append(best.indices[0].item())
        if out[-1] in stop:
            break
        ids = torch.tensor([[out[-1]]])
    return out, margin


def logit_row(model, ids, full):
    last = logits(model, ids)[-1]
    row = {"ids": ids, "logsumexp": short(last.logsumexp(0).item())}
    if full:
        row["logits"] = [short(x) for x in last.tolist()]
    else:
        top = last.topk(TOP)
        row["top"] = [[i, short(x)] for i, x in zip(top.indices.tolist(), top.values.tolist())]
        row["stride"] = [short(x) for x in last[::STRIDE].tolist()]
    return row


def best_answers(rows, count):
    """Those whose greedy choice is clearest, in their own order."""
    rows = [row for row in rows if row["margin"] > MARGIN_MIN]
    keep = sorted(rows, key=lambda row: -row["margin"])[:count]
    assert len(keep) == count, f"only {len(keep)} answers are clear"
    return [row for row in rows if row in keep]


def smollm2_fixtures(path, node):
    metadata, tensors = gguf_oracle.read(path)
    config = transformers.LlamaConfig(
        vocab_size=len(metadata["tokenizer.ggml.tokens"]), hidden_size=metadata["llama.embedding_length"],
        intermediate_size=metadata["llama.feed_forward_length"], num_hidden_layers=metadata["llama.block_count"],
        num_attention_heads=metadata["llama.attention.head_count"], num_key_value_heads=metadata["llama.attention.head_count_kv"],
        max_position_embeddings=metadata["llama.context_length"], rms_norm_eps=metadata["llama.attention.layer_norm_rms_epsilon"],
        rope_theta=metadata["llama.rope.freq_base"], rope_parameters={"rope_type": "default", "rope_theta": metadata["llama.rope.freq_base"]},
        tie_word_embeddings=True)
    model = transformers.LlamaForCausalLM(config).eval()
    state = {name: torch.from_numpy(weight.copy()) for name, weight in gguf_oracle.hugging_face_state(metadata, tensors).items()}
    model.load_state_dict(state, strict=True)
    template = metadata["tokenizer.chat_template"]
    prompts = [render(template, [cases.user(question)], None, True, {})["text"] for question in cases.QUESTIONS]
    texts = [[text, False] for text in cases.TEXTS] + [[text, True] for text in cases.TEXTS] + [[prompt, True] for prompt in prompts]
    run = subprocess.run(["node", HERE / "llama_cpp_tokens.mjs", path], cwd=node, input=json.dumps(texts), capture_output=True, text=True, check=True)
    ids = json.loads(run.stdout.splitlines()[-1])
    n = len(cases.TEXTS)
    plain, special, prompt_ids = ids[:n], ids[n:2 * n], ids[2 * n:]
    tokens = [{"text": text, "plain": a, "special": b} for text, a, b in zip(cases.TEXTS, plain, special)]
    answers = []
    for question, text, prompt in zip(cases.QUESTIONS, prompts, prompt_ids):
        out, margin = greedy(model, prompt, SMOLLM2_TOKENS, {metadata["tokenizer.ggml.eos_token_id"]})
        answers.append({"question": question, "prompt": prompt, "answer": out, "margin": short(margin)})
    long = [token for prompt in prompt_ids for token in prompt]
    inputs = [prompt_ids[0], prompt_ids[4], [1], [19556, 905], long[:333], long[:700]]
    dump("smollm2.json", {"margin_min": MARGIN_MIN, "stride": STRIDE, "tokens": tokens, "answers": best_answers(answers, SMOLLM2_ANSWERS),
                          "logits": [logit_row(model, row, False) for row in inputs]})
    return template


def abacus_fixtures():
    tokenizer = transformers.AutoTokenizer.from_pretrained(ABACUS)
    model = transformers.AutoModelForCausalLM.from_pretrained(ABACUS, dtype=torch.float32).eval()
    stop = set(model.generation_config.eos_token_id)
    tokens = [{"text": text, "special": tokenizer(text, add_special_tokens=False).input_ids} for text in cases.TEXTS]
    value = {"margin_min": MARGIN_MIN, "tokens": tokens}
    prompts = []
    for thinking in (True, False):
        rows = []
        for question in cases.SUMS:
            prompt = tokenizer.apply_chat_template([cases.user(question)], add_generation_prompt=True, enable_thinking=thinking,
                                                   return_dict=True).input_ids
            out, margin = greedy(model, prompt, ABACUS_TOKENS, stop)
            rows.append({"question": question, "prompt": prompt, "answer": out, "margin": short(margin)})
            prompts.append(prompt + out)
        value["answers_thinking" if thinking else "answers_direct"] = best_answers(rows, ABACUS_ANSWERS)
    long = [token for prompt in prompts for token in prompt]
    inputs = [prompts[0], prompts[len(cases.SUMS)], prompts[0][:1], long[:17], long[:511], long[:1500]]
    value["logits"] = [logit_row(model, row, True) for row in inputs]
    dump("abacus.json", value)


@torch.inference_mode()
def router_margin(model, ids):
    out = model(input_ids=torch.tensor([ids]), output_router_logits=True)
    best = [layer.topk(model.config.num_experts_per_tok + 1).values for layer in out.router_logits]
    return min((values[:, -2] - values[:, -1]).min().item() for values in best)


def random_fixtures(name, model_class, config, dtype, shard):
    torch.manual_seed(20261130)
    model = model_class(config)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            weight.normal_(1.0 if "norm" in key else 0.0, 0.3)
    model = model.to(dtype)
    folder = HERE / name
    model.save_pretrained(folder, max_shard_size=shard)
    (folder / "generation_config.json").unlink(missing_ok=True)
    model = model_class.from_pretrained(folder, dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(7)
    rows = []
    for length in (1, 2, 15, 16, 17, 33, 64):
        ids = torch.randint(0, config.vocab_size, (length,), generator=generator).tolist()
        if hasattr(config, "num_experts"):
            margin = router_margin(model, ids)
            assert margin > ROUTER_MARGIN_MIN, f"{name}: rounding may choose another expert, margin {margin}"
        rows.append({"ids": ids, "all": [[short(x) for x in row] for row in logits(model, ids).tolist()]} if length <= 17
                    else logit_row(model, ids, True))
    dump(f"{name}.json", {"logits": rows})


def expert_fixtures(odd):
    mixture = dict(odd, vocab_size=101, num_hidden_layers=4, moe_intermediate_size=20, num_experts=8, num_experts_per_tok=2,
                   tie_word_embeddings=False, rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 50_000.0})
    for name, more in (("qwen3moe-random", dict(norm_topk_prob=True)),
                       ("qwen3moe-mixed", dict(norm_topk_prob=False, decoder_sparse_step=2, mlp_only_layers=[3]))):
        config = transformers.Qwen3MoeConfig(**mixture, **more)
        random_fixtures(name, transformers.Qwen3MoeForCausalLM, config, torch.bfloat16, "1GB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smollm2")
    parser.add_argument("--node")
    parser.add_argument("--only-abacus", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(2)
    if args.only_abacus:
        abacus_fixtures()
        template_fixtures((HERE / "templates/smollm2.jinja").read_text())
        return
    if not (args.smollm2 and args.node):
        parser.error("--smollm2 and --node are needed, or --only-abacus")
    odd = dict(hidden_size=36, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=10, intermediate_size=52,
               max_position_embeddings=128, bos_token_id=None, eos_token_id=1, pad_token_id=None)
    random_fixtures("qwen3-random", transformers.Qwen3ForCausalLM, transformers.Qwen3Config(
        vocab_size=101, tie_word_embeddings=False, rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 50_000.0}, **odd),
        torch.bfloat16, "1GB")
    random_fixtures("llama-random", transformers.LlamaForCausalLM, transformers.LlamaConfig(
        vocab_size=67, tie_word_embeddings=True, rms_norm_eps=1e-6, rope_parameters={"rope_type": "default", "rope_theta": 10_000.0}, **odd),
        torch.float16, "30KB")
    expert_fixtures(odd)
    abacus_fixtures()
    template_fixtures(smollm2_fixtures(args.smollm2, args.node))


if __name__ == "__main__":
    main()
