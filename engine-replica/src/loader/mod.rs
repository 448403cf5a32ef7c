//! Model files to typed values: what a checkpoint holds, wherever it came from.
//!
//! Tensor names are Hugging Face's (`model.layers.0.self_attn.q_proj.weight`) for every format; `gguf` maps its own.

mod error;
mod fingerprint;
mod folder;
mod gguf;
mod map;
mod safetensors;
mod shape;
mod source;
mod table;
pub mod tensor;

use std::path::Path;

pub use self::error::LoadError;
use self::folder::Folder;
pub use self::source::{BUILTIN, ModelSource};
pub use self::table::Tensors;
use crate::model::config::ModelConfig;
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;

/// Everything that serving a model takes.
#[derive(Debug)]
pub struct Checkpoint {
    /// What the model is called where nothing else was asked for: the file's name without `.gguf` (and without the
    /// numbers of a split), or the folder's. A GGUF's own `general.name` is not used: converters fill it from
    /// whatever folder they were run in.
    pub name: String,
    /// Shape and tensors.
    pub weights: Weights,
    /// Text to token ids and back.
    pub tokenizer: Tokenizer,
    /// Messages to prompt text.
    pub template: ChatTemplate,
    /// Tokens that end an answer, sorted; never empty.
    pub eos: Vec<u32>,
    /// How the model's makers want it sampled.
    pub generation: GenerationDefaults,
}

/// The numbers of a model, without its vocabulary.
#[derive(Debug)]
pub struct Weights {
    /// The shape, checked against every tensor.
    pub config: ModelConfig,
    /// All tensors, in place in their files.
    pub tensors: Tensors,
    /// SHA-256 in hex over headers and sizes: the same for the same files, on every host.
    pub fingerprint: String,
}

/// Sampling that a checkpoint asks for; `None` where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GenerationDefaults {
    /// 0 for greedy, as `do_sample: false` says.
    pub temperature: Option<f32>,
    /// Nucleus cut-off, 0 to 1.
    pub top_p: Option<f32>,
    /// Tokens kept.
    pub top_k: Option<u32>,
    /// Least share of the likeliest token's probability, 0 to 1.
    pub min_p: Option<f32>,
    /// Divides the logits of tokens seen before; 1 does nothing.
    pub repetition_penalty: Option<f32>,
    /// Most tokens to generate.
    pub max_new_tokens: Option<u32>,
}

/// Opens a checkpoint: a `.gguf` file (any one of a split model) or a Hugging Face folder with safetensors.
///
/// Weights are mapped, not read. The error names every problem found.
pub fn open(path: &Path) -> Result<Checkpoint, LoadError> {
    match kind(path)? {
        Kind::Gguf => gguf::open(path),
        Kind::Folder => safetensors::open(Folder::OnDisk(path)),
    }
}

/// Opens only shape and tensors of a checkpoint, which may then lack a vocabulary and a chat template.
pub fn open_weights(path: &Path) -> Result<Weights, LoadError> {
    match kind(path)? {
        Kind::Gguf => gguf::open_weights(path),
        Kind::Folder => safetensors::open_weights(Folder::OnDisk(path)),
    }
}

enum Kind {
    Gguf,
    Folder,
}

fn kind(path: &Path) -> Result<Kind, LoadError> {
    let metadata = std::fs::metadata(path)
        .map_err(|error| LoadError::one(path, format!("cannot be read: {error}")))?;
    if metadata.is_dir() {
        return Ok(Kind::Folder);
    }
    if path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
    {
        return Ok(Kind::Gguf);
    }
    Err(LoadError::one(
        path,
        "expected a `.gguf` file or a Hugging Face folder (config.json, tokenizer.json, model.safetensors)",
    ))
}
