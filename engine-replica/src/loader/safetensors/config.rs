//! `config.json`: the model's shape, and everything in it that would change the computation.

use serde::Deserialize;
use serde_json::Value;

use crate::model::config::{Family, MixtureConfig, ModelConfig, RopeStyle};

/// The architecture whose layers may have experts.
const QWEN3_MOE: &str = "Qwen3MoeForCausalLM";

/// Hugging Face's default where the file says nothing.
const ROPE_THETA_DEFAULT: f64 = 10_000.0;

/// The fields that this build reads. Others are there for training or for other libraries; those that would change
/// the computation are listed here and refused.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Config {
    architectures: Vec<String>,
    vocab_size: Option<usize>,
    hidden_size: Option<usize>,
    num_hidden_layers: Option<usize>,
    num_attention_heads: Option<usize>,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    intermediate_size: Option<usize>,
    max_position_embeddings: Option<usize>,
    rms_norm_eps: Option<f64>,
    tie_word_embeddings: bool,
    rope_theta: Option<f64>,
    rope_scaling: Option<Rope>,
    rope_parameters: Option<Rope>,
    hidden_act: Option<String>,
    attention_bias: bool,
    mlp_bias: bool,
    use_sliding_window: Option<bool>,
    sliding_window: Option<u64>,
    layer_types: Option<Vec<String>>,
    partial_rotary_factor: Option<f64>,
    quantization_config: Option<Value>,
    num_experts: Option<usize>,
    /// What newer exporters call `num_experts`.
    num_local_experts: Option<usize>,
    num_experts_per_tok: Option<usize>,
    moe_intermediate_size: Option<usize>,
    norm_topk_prob: Option<bool>,
    decoder_sparse_step: Option<usize>,
    mlp_only_layers: Option<Vec<usize>>,
    pub(super) eos_token_id: Option<OneOrMany>,
}

/// Both the older `rope_scaling` and the newer `rope_parameters`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rope {
    #[serde(alias = "type")]
    rope_type: Option<String>,
    rope_theta: Option<f64>,
}

/// Hugging Face writes one id or a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(u32),
    Many(Vec<u32>),
}

impl OneOrMany {
    pub(super) fn into_vec(self) -> Vec<u32> {
        match self {
            OneOrMany::One(id) => vec![id],
            OneOrMany::Many(ids) => ids,
        }
    }
}

impl Config {
    pub(super) fn model(&self, problems: &mut Vec<String>) -> Option<ModelConfig> {
        let family = self.family(problems);
        self.refuse_other_computations(family, problems);
        let mut required = |name: &str, value: Option<usize>| {
            if value.is_none() {
                problems.push(format!("config.json lacks `{name}`"));
            }
            value
        };
        let vocab = required("vocab_size", self.vocab_size);
        let hidden = required("hidden_size", self.hidden_size);
        let layers = required("num_hidden_layers", self.num_hidden_layers);
        let heads = required("num_attention_heads", self.num_attention_heads);
        let intermediate = required("intermediate_size", self.intermediate_size);
        let context_max = required("max_position_embeddings", self.max_position_embeddings);
        let mixture = self.has_experts().then(|| self.mixture(problems));
        if self.rms_norm_eps.is_none() {
            problems.push("config.json lacks `rms_norm_eps`".to_owned());
        }
        let by_width = hidden
            .zip(heads)
            .and_then(|(hidden, heads)| hidden.checked_div(heads));
        let rope_theta = self
            .rope_parameters
            .as_ref()
            .and_then(|rope| rope.rope_theta)
            .or(self.rope_theta)
            .unwrap_or(ROPE_THETA_DEFAULT);
        Some(ModelConfig {
            family: family?,
            vocab: vocab?,
            hidden: hidden?,
            layers: layers?,
            heads: heads?,
            kv_heads: self.num_key_value_heads.or(heads)?,
            head_dim: self.head_dim.or(by_width)?,
            intermediate: intermediate?,
            context_max: context_max?,
            rope_theta: rope_theta as f32,
            rope_style: RopeStyle::Half,
            rms_eps: self.rms_norm_eps? as f32,
            tied_output: self.tie_word_embeddings,
            mixture: match mixture {
                Some(mixture) => Some(mixture?),
                None => None,
            },
        })
    }

    fn has_experts(&self) -> bool {
        self.architectures == [QWEN3_MOE]
    }

    fn mixture(&self, problems: &mut Vec<String>) -> Option<MixtureConfig> {
        let mut required = |name: &str, value: Option<usize>| {
            if value.is_none() {
                problems.push(format!("config.json lacks `{name}`"));
            }
            value
        };
        let experts = required("num_experts", self.num_experts.or(self.num_local_experts));
        let chosen = required("num_experts_per_tok", self.num_experts_per_tok);
        let intermediate = required("moe_intermediate_size", self.moe_intermediate_size);
        Some(MixtureConfig {
            experts: experts?,
            chosen: chosen?,
            intermediate: intermediate?,
            renormalise: self.norm_topk_prob.unwrap_or(false),
            every: self.decoder_sparse_step.unwrap_or(1),
            dense_layers: self.mlp_only_layers.clone().unwrap_or_default(),
        })
    }

    fn family(&self, problems: &mut Vec<String>) -> Option<Family> {
        let architectures: Vec<&str> = self.architectures.iter().map(String::as_str).collect();
        match architectures.as_slice() {
            ["LlamaForCausalLM"] => Some(Family::Llama),
            ["Qwen3ForCausalLM"] | [QWEN3_MOE] => Some(Family::Qwen3),
            other => {
                problems.push(format!(
                    "config.json has the architectures {other:?}, of which this build computes none; known: \
                     LlamaForCausalLM, Qwen3ForCausalLM, {QWEN3_MOE}"
                ));
                None
            }
        }
    }

    fn refuse_other_computations(&self, family: Option<Family>, problems: &mut Vec<String>) {
        let mut refuse = |name: &str, value: &dyn std::fmt::Debug, expected: &str| {
            problems.push(format!(
                "config.json has `{name}` {value:?}, which this build does not compute; expected {expected}"
            ));
        };
        for (name, rope) in [
            ("rope_scaling", &self.rope_scaling),
            ("rope_parameters", &self.rope_parameters),
        ] {
            let kind = rope.as_ref().and_then(|rope| rope.rope_type.as_deref());
            if let Some(kind) = kind.filter(|&kind| kind != "default") {
                refuse(name, &kind, "`default` or nothing");
            }
        }
        if let Some(act) = self.hidden_act.as_deref().filter(|&act| act != "silu") {
            refuse("hidden_act", &act, "`silu`");
        }
        for (name, value) in [
            ("attention_bias", self.attention_bias),
            ("mlp_bias", self.mlp_bias),
        ] {
            if value {
                refuse(name, &value, "false");
            }
        }
        // Qwen3 writes a window that it does not use; where the switch is absent the window is in use.
        let window_used = self
            .use_sliding_window
            .unwrap_or(family != Some(Family::Qwen3));
        if let Some(window) = self.sliding_window.filter(|_| window_used) {
            refuse("sliding_window", &window, "null");
        }
        let other_layer = self
            .layer_types
            .iter()
            .flatten()
            .find(|&kind| kind != "full_attention");
        if let Some(kind) = other_layer {
            refuse("layer_types", kind, "`full_attention` alone");
        }
        if let Some(factor) = self
            .partial_rotary_factor
            .filter(|&factor| (factor - 1.0).abs() > f64::EPSILON)
        {
            refuse("partial_rotary_factor", &factor, "1.0");
        }
        if let Some(quantization) = &self.quantization_config {
            let method = quantization["quant_method"]
                .as_str()
                .unwrap_or("of an unnamed method");
            refuse("quantization_config", &method, "unquantised weights");
        }
    }
}
