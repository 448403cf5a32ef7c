//! The model's shape out of GGUF metadata.

use super::value::{Metadata, Value};
use crate::loader::table::Tensors;
use crate::model::config::{Family, MixtureConfig, ModelConfig, RopeStyle};

/// The architecture whose layers have experts.
const QWEN3_MOE: &str = "qwen3moe";
/// The number that llama.cpp gives to choosing experts by softmax.
const SOFTMAX_GATING: usize = 1;

/// GGML's defaults for keys that a file may leave out.
const ROPE_THETA_DEFAULT: f64 = 10_000.0;

/// Reads every key that the family needs and refuses those that change a computation this build does not have.
pub(super) fn read(
    metadata: &Metadata,
    tensors: &Tensors,
    problems: &mut Vec<String>,
) -> Option<ModelConfig> {
    let arch = match metadata.text("general.architecture") {
        Ok(Some(arch)) => arch,
        Ok(None) => {
            problems.push(
                "`general.architecture` is missing, expected `llama`, `qwen3` or `qwen3moe`"
                    .to_owned(),
            );
            return None;
        }
        Err(problem) => {
            problems.push(problem);
            return None;
        }
    };
    let (family, rope_style) = match arch {
        "llama" => (Family::Llama, RopeStyle::Interleaved),
        "qwen3" | QWEN3_MOE => (Family::Qwen3, RopeStyle::Half),
        other => {
            problems.push(format!(
                "the architecture is `{other}`, which this build does not compute; known: llama, qwen3, {QWEN3_MOE}"
            ));
            return None;
        }
    };
    let mut keys = Keys {
        metadata,
        arch,
        problems,
    };
    keys.refuse_other_computations();
    let mixture = (arch == QWEN3_MOE).then(|| keys.mixture());
    let hidden = keys.required("embedding_length");
    let layers = keys.required("block_count");
    let intermediate = keys.required("feed_forward_length");
    let context_max = keys.required("context_length");
    let heads = keys.required("attention.head_count");
    let kv_heads = keys.size("attention.head_count_kv").or(heads);
    let rms_eps = keys.float("attention.layer_norm_rms_epsilon");
    if rms_eps.is_none() {
        keys.missing("attention.layer_norm_rms_epsilon");
    }
    let head_dim = keys.head_dim(hidden, heads);
    let rope_theta = keys.float("rope.freq_base").unwrap_or(ROPE_THETA_DEFAULT);
    let Some((vocab, _)) = tensors.shape("model.embed_tokens.weight") else {
        keys.problems
            .push("tensor `token_embd.weight` is missing".to_owned());
        return None;
    };
    Some(ModelConfig {
        family,
        vocab,
        hidden: hidden?,
        layers: layers?,
        heads: heads?,
        kv_heads: kv_heads?,
        head_dim: head_dim?,
        intermediate: intermediate?,
        context_max: context_max?,
        rope_theta: rope_theta as f32,
        rope_style,
        rms_eps: rms_eps? as f32,
        tied_output: tensors.shape("lm_head.weight").is_none(),
        mixture: match mixture {
            Some(mixture) => Some(mixture?),
            None => None,
        },
    })
}

/// Getters under one architecture's prefix that collect problems instead of stopping at the first.
struct Keys<'a> {
    metadata: &'a Metadata,
    arch: &'a str,
    problems: &'a mut Vec<String>,
}

impl Keys<'_> {
    fn take<T>(&mut self, result: Result<Option<T>, String>) -> Option<T> {
        result.unwrap_or_else(|problem| {
            self.problems.push(problem);
            None
        })
    }

    fn size(&mut self, key: &str) -> Option<usize> {
        self.take(self.metadata.size(&format!("{}.{key}", self.arch)))
    }

    fn float(&mut self, key: &str) -> Option<f64> {
        self.take(self.metadata.float(&format!("{}.{key}", self.arch)))
    }

    fn missing(&mut self, key: &str) {
        // A key of the wrong type was reported as such already.
        let key = format!("{}.{key}", self.arch);
        if !self.metadata.0.contains_key(&key) {
            self.problems
                .push(format!("metadata key `{key}` is missing"));
        }
    }

    fn required(&mut self, key: &str) -> Option<usize> {
        let value = self.size(key);
        if value.is_none() {
            self.missing(key);
        }
        value
    }

    fn head_dim(&mut self, hidden: Option<usize>, heads: Option<usize>) -> Option<usize> {
        let by_width = hidden
            .zip(heads)
            .and_then(|(hidden, heads)| hidden.checked_div(heads));
        let head_dim = self.size("attention.key_length").or(by_width)?;
        for key in ["attention.value_length", "rope.dimension_count"] {
            if let Some(other) = self.size(key).filter(|&other| other != head_dim) {
                self.problems.push(format!(
                    "`{}.{key}` is {other} where a head has {head_dim} elements; this build computes only equal sizes",
                    self.arch
                ));
            }
        }
        Some(head_dim)
    }

    fn mixture(&mut self) -> Option<MixtureConfig> {
        let experts = self.required("expert_count");
        let chosen = self.required("expert_used_count");
        let intermediate = self.required("expert_feed_forward_length");
        let norm = format!("{}.expert_weights_norm", self.arch);
        let gating = self.size("expert_gating_func");
        if let Some(gating) = gating.filter(|&gating| gating != SOFTMAX_GATING) {
            self.problems.push(format!(
                "`{}.expert_gating_func` is {gating}, which this build does not compute; expected {SOFTMAX_GATING} (softmax)",
                self.arch
            ));
        }
        Some(MixtureConfig {
            experts: experts?,
            chosen: chosen?,
            intermediate: intermediate?,
            // The files of this architecture have no such key as a rule, and llama.cpp takes it as true.
            renormalise: self.take(self.metadata.bool(&norm)).unwrap_or(true),
            every: 1,
            dense_layers: Vec::new(),
        })
    }

    fn refuse_other_computations(&mut self) {
        let arch = self.arch;
        let scaling = self.take(self.metadata.text(&format!("{arch}.rope.scaling.type")));
        if let Some(kind) = scaling.filter(|&kind| kind != "none") {
            self.problems.push(format!(
                "rotary scaling `{kind}` is not computed by this build; known: none"
            ));
        }
        let experts = (arch != QWEN3_MOE).then_some("expert_count");
        let others = ["expert_shared_count", "attention.sliding_window"];
        for key in others.into_iter().chain(experts) {
            if let Some(count) = self.size(key).filter(|&count| count > 0) {
                self.problems.push(format!(
                    "`{arch}.{key}` is {count}, which this build does not compute; expected 0 or nothing"
                ));
            }
        }
        for key in [
            "logit_scale",
            "embedding_scale",
            "residual_scale",
            "attention.scale",
            "expert_weights_scale",
        ] {
            let key = format!("{arch}.{key}");
            let neutral = match self.metadata.0.get(&key) {
                None => true,
                Some(Value::Float(x)) => *x == 0.0 || (*x - 1.0).abs() < f64::EPSILON,
                Some(_) => false,
            };
            if !neutral {
                self.problems
                    .push(format!("`{key}` is not computed by this build"));
            }
        }
    }
}
