//! A checkpoint's tensors, looked up under their names and checked against the config.

use super::config::{Family, ModelConfig};
use super::mlp::{MlpViews, find_mlp};
use super::problem::{ModelError, Problem};
use crate::backend::HeadShape;
use crate::loader::tensor::{DType, QUANT_BLOCK, TensorSource, TensorView};

/// The heads that a config describes.
pub(super) fn heads_of(config: &ModelConfig) -> HeadShape {
    HeadShape {
        heads: config.heads,
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
    }
}

/// Every tensor that the config's family needs, or all that is wrong with the config or with them.
pub(super) fn find<'a>(
    config: &ModelConfig,
    tensors: &'a dyn TensorSource,
) -> Result<Views<'a>, ModelError> {
    check_config(config)?;
    let mut finder = Finder {
        tensors,
        problems: Vec::new(),
    };
    match find_all(config, &mut finder) {
        Some(views) if finder.problems.is_empty() => Ok(views),
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
    if let Some(mixture) = &config.mixture {
        let more = mixture.problems(config.layers);
        problems.extend(more.into_iter().map(Problem::Config));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(ModelError::Checkpoint(problems))
    }
}

/// Every tensor of the model, still in its file.
pub(super) struct Views<'a> {
    pub(super) embedding: TensorView<'a>,
    pub(super) layers: Vec<LayerViews<'a>>,
    pub(super) norm: TensorView<'a>,
    pub(super) output: Option<TensorView<'a>>,
}

pub(super) struct LayerViews<'a> {
    pub(super) attention_norm: TensorView<'a>,
    pub(super) qkv: [TensorView<'a>; 3],
    pub(super) qk_norm: Option<(TensorView<'a>, TensorView<'a>)>,
    pub(super) attention_out: TensorView<'a>,
    pub(super) mlp_norm: TensorView<'a>,
    pub(super) mlp: MlpViews<'a>,
}

/// Looks tensors up and keeps what is wrong with them.
pub(super) struct Finder<'a> {
    tensors: &'a dyn TensorSource,
    problems: Vec<Problem>,
}

impl<'a> Finder<'a> {
    /// The tensor of this name and shape, or `None` with the problem noted.
    pub(super) fn get(&mut self, name: &str, rows: usize, cols: usize) -> Option<TensorView<'a>> {
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
fn find_all<'a>(config: &ModelConfig, finder: &mut Finder<'a>) -> Option<Views<'a>> {
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
    let (heads, hidden) = (heads_of(config), config.hidden);
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
    let mlp = find_mlp(config, finder, layer);
    Some(LayerViews {
        attention_norm: attention_norm?,
        qkv: [q?, k?, v?],
        qk_norm: match qk_norm {
            Some((q, k)) => Some((q?, k?)),
            None => None,
        },
        attention_out: attention_out?,
        mlp_norm: mlp_norm?,
        mlp: mlp?,
    })
}
