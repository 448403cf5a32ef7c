//! What a checkpoint says about its model's shape.

/// Which computation the tensors belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Llama (SmolLM2 among them): RMSNorm, rotary, grouped-query attention, SwiGLU.
    Llama,
    /// Qwen3: Llama plus an RMSNorm of each query and key head before rotary; dense or with a mixture of experts.
    Qwen3,
}

/// Which pairs of a head's elements rotary embedding turns together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeStyle {
    /// `(i, i + head_dim/2)`: Hugging Face checkpoints, and GGUF of every family but `llama`.
    Half,
    /// `(2i, 2i+1)`: GGUF with `general.architecture = llama`, whose converter permutes query and key rows.
    Interleaved,
}

/// Shape and constants of one model. Every field is checked by the loader against the tensors' own shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// The computation.
    pub family: Family,
    /// Rows of the embedding table.
    pub vocab: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Transformer layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Elements of one head; even.
    pub head_dim: usize,
    /// Width of the feed-forward layer.
    pub intermediate: usize,
    /// Positions that the model was made for, in tokens.
    pub context_max: usize,
    /// Rotary base.
    pub rope_theta: f32,
    /// Rotary pairing.
    pub rope_style: RopeStyle,
    /// Epsilon of every RMSNorm.
    pub rms_eps: f32,
    /// The output projection is the embedding table.
    pub tied_output: bool,
    /// Experts in place of the one feed-forward network, in some layers or all.
    pub mixture: Option<MixtureConfig>,
}

/// A mixture of experts: each row goes to the few whose weight for it is greatest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixtureConfig {
    /// Experts of a layer.
    pub experts: usize,
    /// Experts that each row goes to; from 1 to `experts`.
    pub chosen: usize,
    /// Width of an expert's feed-forward network.
    pub intermediate: usize,
    /// Whether the weights of a row's experts are scaled to sum to 1 (`norm_topk_prob`).
    pub renormalise: bool,
    /// Every so many layers one has experts (`decoder_sparse_step`): those whose number, counted from 1, it divides.
    pub every: usize,
    /// Layers that have none all the same (`mlp_only_layers`).
    pub dense_layers: Vec<usize>,
}

/// Experts of one layer; the widest open models have 512.
pub const EXPERTS_MAX: usize = 1024;
/// Experts of all layers together; the largest open models have about 25,000.
pub const EXPERTS_ALL_MAX: usize = 1 << 17;

impl ModelConfig {
    /// The mixture of this layer, counted from 0; `None` where it is dense.
    pub fn mixture_of(&self, layer: usize) -> Option<&MixtureConfig> {
        let sparse = |m: &&MixtureConfig| {
            (layer + 1).is_multiple_of(m.every) && !m.dense_layers.contains(&layer)
        };
        self.mixture.as_ref().filter(sparse)
    }
}

impl MixtureConfig {
    /// What is wrong with these numbers in a model of so many layers, for people.
    pub fn problems(&self, layers: usize) -> Vec<String> {
        let ranges = [
            ("expert count", self.experts, EXPERTS_MAX),
            (
                "count of experts chosen for a token",
                self.chosen,
                self.experts,
            ),
            ("feed-forward size of an expert", self.intermediate, 1 << 24),
            ("distance between layers with experts", self.every, layers),
        ];
        let wrong = ranges
            .iter()
            .filter(|(_, value, max)| *value == 0 || value > max);
        let mut problems: Vec<String> = wrong
            .map(|(what, value, max)| format!("the {what} is {value}, expected 1 to {max}"))
            .collect();
        if let Some(layer) = self.dense_layers.iter().find(|&&layer| layer >= layers) {
            problems.push(format!(
                "layer {layer} is said to have no experts, and there are {layers} layers counted from 0"
            ));
        }
        if self.experts.saturating_mul(layers) > EXPERTS_ALL_MAX {
            problems.push(format!(
                "{} experts in each of {layers} layers are more than the {EXPERTS_ALL_MAX} that this build holds",
                self.experts
            ));
        }
        problems
    }
}
