//! GGUF's tensor names to Hugging Face's.

/// What a layer's stacked experts are called.
const STACKS: [(&str, &str); 3] = [
    ("ffn_gate_exps.weight", "gate_proj"),
    ("ffn_up_exps.weight", "up_proj"),
    ("ffn_down_exps.weight", "down_proj"),
];

/// Where a tensor holds the experts of a layer one after the other: each one's Hugging Face name by its number.
pub(super) fn stacked_experts(name: &str) -> Option<impl Fn(u64) -> String> {
    let (layer, part) = name.strip_prefix("blk.")?.split_once('.')?;
    let (_, part) = STACKS.iter().find(|(stack, _)| *stack == part)?;
    Some(move |expert| format!("model.layers.{layer}.mlp.experts.{expert}.{part}.weight"))
}

/// The Hugging Face name of a tensor; one that is not known keeps its own, and the shape check then names it.
pub(super) fn hugging_face(name: &str) -> String {
    let whole = match name {
        "token_embd.weight" => Some("model.embed_tokens.weight"),
        "output_norm.weight" => Some("model.norm.weight"),
        "output.weight" => Some("lm_head.weight"),
        _ => None,
    };
    if let Some(whole) = whole {
        return whole.to_owned();
    }
    layer_part(name).unwrap_or_else(|| name.to_owned())
}

fn layer_part(name: &str) -> Option<String> {
    let (layer, part) = name.strip_prefix("blk.")?.split_once('.')?;
    let (part, suffix) = part.rsplit_once('.')?;
    let part = match part {
        "attn_norm" => "input_layernorm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_output" => "self_attn.o_proj",
        "attn_q_norm" => "self_attn.q_norm",
        "attn_k_norm" => "self_attn.k_norm",
        "ffn_norm" => "post_attention_layernorm",
        "ffn_gate_inp" => "mlp.gate",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        _ => return None,
    };
    Some(format!("model.layers.{layer}.{part}.{suffix}"))
}
