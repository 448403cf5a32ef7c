//! A checkpoint's tensors, checked against the config and uploaded.

use std::fmt;

use super::config::{Family, ModelConfig};
use crate::backend::{Backend, BackendError, HeadShape};
use crate::loader::tensor::{DType, QUANT_BLOCK, TensorSource, TensorView};

/// All weights of a model.
pub struct Weights<B: Backend> {
    /// (vocab, hidden)
    pub(super) embedding: B::Matrix,
    /// In order.
    pub(super) layers: Vec<Layer<B>>,
    /// (hidden)
    pub(super) norm: B::Vector,
    /// (vocab, hidden); `None` is the embedding again.
    pub(super) output: Option<B::Matrix>,
}

/// The weights of one layer.
pub(super) struct Layer<B: Backend> {
    /// (hidden)
    pub(super) attention_norm: B::Vector,
    /// (qkv_width, hidden)
    pub(super) qkv: B::Matrix,
    /// (head_dim) each, for queries and keys; Qwen3 only.
    pub(super) qk_norm: Option<(B::Vector, B::Vector)>,
    /// (hidden, q_width)
    pub(super) attention_out: B::Matrix,
    /// (hidden)
    pub(super) mlp_norm: B::Vector,
    /// (2 · intermediate, hidden): the gate's rows, then the up projection's.
    pub(super) gate_up: B::Matrix,
    /// (hidden, intermediate)
    pub(super) down: B::Matrix,
}

/// Why a model could not be made from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Everything wrong with the checkpoint or its config.
    #[error("the checkpoint does not hold the model that its config describes: {}", list(.0))]
    Checkpoint(Vec<Problem>),
    /// The backend has no room.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// One thing wrong with a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The config contradicts itself.
    Config(String),
    /// A tensor that the family needs is not there.
    Missing {
        /// Hugging Face name.
        name: String,
        /// (rows, cols) that it should have.
        expected: (usize, usize),
    },
    /// A tensor has another shape than the config says.
    Shape {
        /// Hugging Face name.
        name: String,
        /// (rows, cols) that it has.
        found: (usize, usize),
        /// (rows, cols) that it should have.
        expected: (usize, usize),
    },
    /// A tensor's bytes are not as many as its shape and type need, or its rows are no whole quantisation blocks.
    Bytes {
        /// Hugging Face name.
        name: String,
        /// What is wrong.
        what: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(what) => write!(f, "config: {what}"),
            Self::Missing { name, expected } => {
                write!(f, "`{name}` is missing, expected shape {expected:?}")
            }
            Self::Shape {
                name,
                found,
                expected,
            } => {
                write!(f, "`{name}` has shape {found:?}, expected {expected:?}")
            }
            Self::Bytes { name, what } => write!(f, "`{name}` {what}"),
        }
    }
}

/// Problems shown in one message; a checkpoint of another family would otherwise name every tensor.
const PROBLEMS_SHOWN_MAX: usize = 20;

fn list(problems: &[Problem]) -> String {
    let mut lines: Vec<String> = problems
        .iter()
        .take(PROBLEMS_SHOWN_MAX)
        .map(Problem::to_string)
        .collect();
    if let more @ 1.. = problems.len().saturating_sub(PROBLEMS_SHOWN_MAX) {
        lines.push(format!("and {more} more"));
    }
    lines.join("; ")
}

/// The heads that a config describes.
pub(super) fn heads_of(config: &ModelConfig) -> HeadShape {
    HeadShape {
        heads: config.heads,
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
    }
}

/// Checks every tensor that the config's family needs, then uploads them all.
pub fn build<B: Backend>(
    config: &ModelConfig,
    tensors: &dyn TensorSource,
    backend: &mut B,
) -> Result<Weights<B>, ModelError> {
    check_config(config)?;
    let mut finder = Finder {
        tensors,
        problems: Vec::new(),
    };
    let found = find(config, &mut finder);
    match found {
        Some(views) if finder.problems.is_empty() => Ok(upload(&views, backend)?),
        _ => Err(ModelError::Checkpoint(finder.problems)),
    }
}

/// What the tensors' shapes alone would not show.
fn check_config(config: &ModelConfig) -> Result<(), ModelError> {
    let sizes = [
        ("vocab", config.vocab),
        ("hidden", config.hidden),
        ("layers", config.layers),
        ("heads", config.heads),
        ("kv_heads", config.kv_heads),
        ("head_dim", config.head_dim),
        ("intermediate", config.intermediate),
        ("context_max", config.context_max),
    ];
    let zero = sizes.iter().filter(|(_, size)| *size == 0);
    let mut problems: Vec<Problem> = zero
        .map(|(name, _)| Problem::Config(format!("{name} is 0, expected at least 1")))
        .collect();
    if config.kv_heads > 0 && !config.heads.is_multiple_of(config.kv_heads) {
        let (heads, kv) = (config.heads, config.kv_heads);
        problems.push(Problem::Config(format!(
            "kv_heads {kv} does not divide heads {heads}"
        )));
    }
    if !config.head_dim.is_multiple_of(2) {
        problems.push(Problem::Config(format!(
            "head_dim {} is not even",
            config.head_dim
        )));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(ModelError::Checkpoint(problems))
    }
}

/// Every tensor of the model, still in its file.
struct Views<'a> {
    embedding: TensorView<'a>,
    layers: Vec<LayerViews<'a>>,
    norm: TensorView<'a>,
    output: Option<TensorView<'a>>,
}

struct LayerViews<'a> {
    attention_norm: TensorView<'a>,
    qkv: [TensorView<'a>; 3],
    qk_norm: Option<(TensorView<'a>, TensorView<'a>)>,
    attention_out: TensorView<'a>,
    mlp_norm: TensorView<'a>,
    gate_up: [TensorView<'a>; 2],
    down: TensorView<'a>,
}

/// Looks tensors up and keeps what is wrong with them.
struct Finder<'a> {
    tensors: &'a dyn TensorSource,
    problems: Vec<Problem>,
}

impl<'a> Finder<'a> {
    /// The tensor of this name and shape, or `None` with the problem noted.
    fn get(&mut self, name: &str, rows: usize, cols: usize) -> Option<TensorView<'a>> {
        let (name, expected) = (name.to_owned(), (rows, cols));
        let Some(view) = self.tensors.tensor(&name) else {
            self.problems.push(Problem::Missing { name, expected });
            return None;
        };
        let found = (view.rows, view.cols);
        if found != expected {
            self.problems.push(Problem::Shape {
                name,
                found,
                expected,
            });
            return None;
        }
        let quantised = matches!(view.dtype, DType::Q8_0 | DType::Q4_0 | DType::Q4_1);
        if quantised && !cols.is_multiple_of(QUANT_BLOCK) {
            let dtype = view.dtype;
            let what = format!("is {dtype:?} with {cols} columns, no multiple of {QUANT_BLOCK}");
            self.problems.push(Problem::Bytes { name, what });
            return None;
        }
        let (bytes, needed) = (view.data.len(), view.dtype.bytes(rows * cols));
        if bytes != needed {
            let what = format!("has {bytes} bytes, expected {needed}");
            self.problems.push(Problem::Bytes { name, what });
            return None;
        }
        Some(view)
    }
}

/// Looks every tensor up, all of them even after the first that is wrong.
fn find<'a>(config: &ModelConfig, finder: &mut Finder<'a>) -> Option<Views<'a>> {
    let (vocab, hidden) = (config.vocab, config.hidden);
    let embedding = finder.get("model.embed_tokens.weight", vocab, hidden);
    let layers: Vec<_> = (0..config.layers)
        .map(|i| find_layer(config, finder, i))
        .collect();
    let norm = finder.get("model.norm.weight", 1, hidden);
    let output = (!config.tied_output).then(|| finder.get("lm_head.weight", vocab, hidden));
    Some(Views {
        embedding: embedding?,
        layers: layers.into_iter().collect::<Option<_>>()?,
        norm: norm?,
        output: match output {
            Some(found) => Some(found?),
            None => None,
        },
    })
}

fn find_layer<'a>(
    config: &ModelConfig,
    finder: &mut Finder<'a>,
    layer: usize,
) -> Option<LayerViews<'a>> {
    let (heads, hidden, inner) = (heads_of(config), config.hidden, config.intermediate);
    let mut get = |name: &str, rows: usize, cols: usize| {
        finder.get(&format!("model.layers.{layer}.{name}.weight"), rows, cols)
    };
    let attention_norm = get("input_layernorm", 1, hidden);
    let q = get("self_attn.q_proj", heads.q_width(), hidden);
    let k = get("self_attn.k_proj", heads.kv_width(), hidden);
    let v = get("self_attn.v_proj", heads.kv_width(), hidden);
    let qk_norm = match config.family {
        Family::Llama => None,
        Family::Qwen3 => Some((
            get("self_attn.q_norm", 1, heads.head_dim),
            get("self_attn.k_norm", 1, heads.head_dim),
        )),
    };
    let attention_out = get("self_attn.o_proj", hidden, heads.q_width());
    let mlp_norm = get("post_attention_layernorm", 1, hidden);
    let gate = get("mlp.gate_proj", inner, hidden);
    let up = get("mlp.up_proj", inner, hidden);
    let down = get("mlp.down_proj", hidden, inner);
    Some(LayerViews {
        attention_norm: attention_norm?,
        qkv: [q?, k?, v?],
        qk_norm: match qk_norm {
            Some((q, k)) => Some((q?, k?)),
            None => None,
        },
        attention_out: attention_out?,
        mlp_norm: mlp_norm?,
        gate_up: [gate?, up?],
        down: down?,
    })
}

fn upload<B: Backend>(views: &Views<'_>, backend: &mut B) -> Result<Weights<B>, BackendError> {
    let layers = views
        .layers
        .iter()
        .map(|layer| upload_layer(layer, backend));
    let layers = layers.collect::<Result<_, _>>()?;
    Ok(Weights {
        embedding: backend.upload_matrix(&[views.embedding])?,
        layers,
        norm: vector(&views.norm, backend)?,
        output: views
            .output
            .map(|view| backend.upload_matrix(&[view]))
            .transpose()?,
    })
}

fn upload_layer<B: Backend>(
    views: &LayerViews<'_>,
    backend: &mut B,
) -> Result<Layer<B>, BackendError> {
    let qk_norm = match &views.qk_norm {
        Some((q, k)) => Some((vector(q, backend)?, vector(k, backend)?)),
        None => None,
    };
    Ok(Layer {
        attention_norm: vector(&views.attention_norm, backend)?,
        qkv: backend.upload_matrix(&views.qkv)?,
        qk_norm,
        attention_out: backend.upload_matrix(&[views.attention_out])?,
        mlp_norm: vector(&views.mlp_norm, backend)?,
        gate_up: backend.upload_matrix(&views.gate_up)?,
        down: backend.upload_matrix(&[views.down])?,
    })
}

fn vector<B: Backend>(view: &TensorView<'_>, backend: &mut B) -> Result<B::Vector, BackendError> {
    backend.upload_vector(&crate::backend::dequantise(view))
}
