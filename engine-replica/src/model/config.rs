//! What a checkpoint says about its model's shape.

/// Which computation the tensors belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Llama (SmolLM2 among them): RMSNorm, rotary, grouped-query attention, SwiGLU.
    Llama,
    /// Qwen3 dense: Llama plus an RMSNorm of each query and key head before rotary.
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
}
