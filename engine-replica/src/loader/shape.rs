//! The tensors that a configuration asks for, against those that are there.

use std::collections::HashSet;

use super::table::Tensors;
use crate::model::config::{Family, ModelConfig};

/// Layers that a configuration may name; the deepest open models have about 130.
pub(super) const LAYERS_MAX: usize = 1024;
/// Any other dimension of a configuration, in elements.
const DIMENSION_MAX: usize = 1 << 24;

/// Checks the numbers against each other, before anything is computed or allocated from them.
pub(super) fn check_config(config: &ModelConfig, problems: &mut Vec<String>) {
    let dimensions = [
        ("vocabulary size", config.vocab, DIMENSION_MAX),
        ("hidden size", config.hidden, DIMENSION_MAX),
        ("layer count", config.layers, LAYERS_MAX),
        ("attention head count", config.heads, DIMENSION_MAX),
        ("key and value head count", config.kv_heads, DIMENSION_MAX),
        ("head size", config.head_dim, DIMENSION_MAX),
        ("feed-forward size", config.intermediate, DIMENSION_MAX),
        ("context length", config.context_max, DIMENSION_MAX),
    ];
    let before = problems.len();
    for (what, value, max) in dimensions {
        if value == 0 || value > max {
            problems.push(format!("the {what} is {value}, expected 1 to {max}"));
        }
    }
    if problems.len() > before {
        return;
    }
    if !config.heads.is_multiple_of(config.kv_heads) {
        problems.push(format!(
            "{} attention heads cannot share {} key and value heads evenly",
            config.heads, config.kv_heads
        ));
    }
    if !config.head_dim.is_multiple_of(2) {
        problems.push(format!(
            "the head size is {}, expected an even number",
            config.head_dim
        ));
    }
    if let Some(mixture) = &config.mixture {
        problems.extend(mixture.problems(config.layers));
    }
    for (what, value) in [
        ("rotary base", config.rope_theta),
        ("RMSNorm epsilon", config.rms_eps),
    ] {
        if !(value.is_finite() && value > 0.0) {
            problems.push(format!("the {what} is {value}, expected a positive number"));
        }
    }
}

/// Checks that every tensor is there with its shape, and that none is there that would be left out of the computation.
pub(super) fn check_tensors(config: &ModelConfig, tensors: &Tensors, problems: &mut Vec<String>) {
    let wanted = expected(config);
    for (name, rows, cols) in &wanted {
        match tensors.shape(name) {
            None => problems.push(format!(
                "tensor `{name}` is missing, expected {rows} × {cols}"
            )),
            Some(shape) if shape == (*rows, *cols) => {}
            Some((r, c)) => {
                problems.push(format!(
                    "tensor `{name}` is {r} × {c}, expected {rows} × {cols}"
                ));
            }
        }
    }
    let known: HashSet<&str> = wanted.iter().map(|(name, ..)| name.as_str()).collect();
    for name in tensors.names() {
        if !known.contains(name) && !harmless(name, config) {
            problems.push(format!(
                "tensor `{name}` has no part in a {:?} model as this build computes it; the answers would be wrong without it",
                config.family
            ));
        }
    }
}

/// Tensors that some exporters write although the computation does not need them.
fn harmless(name: &str, config: &ModelConfig) -> bool {
    // Rotary frequencies follow from the base; a tied output projection is the embedding table a second time.
    name.ends_with(".self_attn.rotary_emb.inv_freq")
        || (config.tied_output && name == "lm_head.weight")
}

fn expected(config: &ModelConfig) -> Vec<(String, usize, usize)> {
    let &ModelConfig {
        vocab,
        hidden,
        head_dim,
        ..
    } = config;
    let (q, kv) = (
        config.heads.saturating_mul(head_dim),
        config.kv_heads.saturating_mul(head_dim),
    );
    let mut all = vec![
        ("model.embed_tokens.weight".to_owned(), vocab, hidden),
        ("model.norm.weight".to_owned(), 1, hidden),
    ];
    if !config.tied_output {
        all.push(("lm_head.weight".to_owned(), vocab, hidden));
    }
    let mut layer_parts = vec![
        ("input_layernorm", 1, hidden),
        ("self_attn.q_proj", q, hidden),
        ("self_attn.k_proj", kv, hidden),
        ("self_attn.v_proj", kv, hidden),
        ("self_attn.o_proj", hidden, q),
        ("post_attention_layernorm", 1, hidden),
    ];
    if config.family == Family::Qwen3 {
        layer_parts.extend([
            ("self_attn.q_norm", 1, head_dim),
            ("self_attn.k_norm", 1, head_dim),
        ]);
    }
    for layer in 0..config.layers {
        all.extend(layer_parts.iter().map(|&(part, rows, cols)| {
            (format!("model.layers.{layer}.{part}.weight"), rows, cols)
        }));
        all.extend(feed_forward(config, layer));
    }
    all
}

/// The tensors of a layer's one network, or of its router and experts.
fn feed_forward(config: &ModelConfig, layer: usize) -> Vec<(String, usize, usize)> {
    let hidden = config.hidden;
    let network = |part: String, inner: usize| {
        [
            ("gate_proj", inner, hidden),
            ("up_proj", inner, hidden),
            ("down_proj", hidden, inner),
        ]
        .map(|(name, rows, cols)| {
            let name = format!("model.layers.{layer}.mlp.{part}{name}.weight");
            (name, rows, cols)
        })
    };
    let Some(mixture) = config.mixture_of(layer) else {
        return network(String::new(), config.intermediate).into();
    };
    let router = format!("model.layers.{layer}.mlp.gate.weight");
    let mut all = vec![(router, mixture.experts, hidden)];
    for expert in 0..mixture.experts {
        all.extend(network(format!("experts.{expert}."), mixture.intermediate));
    }
    all
}
