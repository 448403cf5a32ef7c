//! From a model and a few wishes to a running engine.

use std::sync::Arc;

use replica_core::BLOCK_TOKENS;

use crate::api::{Api, SamplingDefaults, Served};
use crate::backend::cuda::CudaError;
use crate::cli::{Device, EngineArgs, ServeArgs};
use crate::engine::config::EngineConfig;
use crate::engine::handle::EngineHandle;
use crate::engine::thread::EngineThread;
use crate::loader::{Checkpoint, GenerationDefaults, LoadError, ModelSource};
use crate::model::config::ModelConfig;
use crate::model::{Capacity, ModelError};

mod device;
mod room;
mod text;

use device::Compute;
use room::Room;
pub use room::RoomError;
use text::ModelText;

/// Why no engine is running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The files cannot be used.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// The tensors do not make the model that they claim to be.
    #[error("{0}")]
    Model(#[from] ModelError),
    /// The thread would not start.
    #[error("{0}")]
    Engine(#[from] crate::engine::config::StartError),
    /// The wishes do not fit the model.
    #[error("{0}")]
    Room(#[from] RoomError),
    /// The tokenizer does not work.
    #[error("{0}")]
    Tokenizer(#[from] crate::tokenizer::EncodeError),
    /// The GPU that was asked for cannot be used.
    #[error("--device {device}: {why}; `--device cpu` and `--device auto` run without a GPU")]
    Device {
        /// As asked for.
        device: Device,
        /// What is missing.
        why: CudaError,
    },
    /// The metrics cannot be registered.
    #[error("the metrics cannot be registered: {0}")]
    Metrics(#[from] prometheus::Error),
}

/// A running engine and what there is to say about it.
pub struct Started {
    /// Takes jobs.
    pub engine: EngineHandle,
    /// The model's own name.
    pub name: String,
    /// Tokens that prompt and answer share.
    pub context_max: usize,
    /// Tokens of KV.
    pub kv_tokens: usize,
    /// Rows of the embedding table.
    pub vocab: usize,
    /// One line a fact, for people.
    pub facts: Vec<String>,
    text: Arc<ModelText>,
    device: String,
    eos: Vec<u32>,
    generation: GenerationDefaults,
}

/// Loads the model and starts its thread; `queue_max` requests may wait for it.
///
/// # Errors
/// See `StartError`.
pub fn engine(args: &EngineArgs, queue_max: usize) -> Result<Started, StartError> {
    let Checkpoint {
        name,
        weights,
        tokenizer,
        template,
        eos,
        generation,
    } = args.model.open()?;
    let room = Room::of(&weights.config, args)?;
    let compute = Compute::choose(args, &weights.config)?;
    let max_running = args.max_running as usize;
    let step_tokens = args.step_tokens as usize;
    // Every running request may decode one token in a step, whatever the budget of a step is.
    let capacity = Capacity {
        rows_max: step_tokens.max(max_running),
        kv_blocks: room.kv_blocks,
    };
    let closing = match &args.model {
        ModelSource::Builtin => text::CLOSING_BUILTIN,
        ModelSource::Path(_) => text::CLOSING_PLAIN,
    };
    let text = Arc::new(ModelText::new(template, tokenizer, closing)?);
    let facts = facts(args, &name, &weights.config, &room, &compute);
    let device = compute.name.clone();
    let step_model = compute.load(&weights, capacity)?;
    let config = EngineConfig {
        max_running,
        step_tokens,
        output_room: args.output_room as usize,
        kept_percent: args.kept_percent as usize,
        queue_max,
        prefix_cache: !args.no_prefix_cache,
        model_identity: format!("{} kv=f32", weights.fingerprint),
        context_max: room.context_max,
    };
    let vocab = weights.config.vocab;
    let engine = EngineThread::start(step_model, config, text.clone())?;
    Ok(Started {
        engine,
        name,
        context_max: room.context_max,
        kv_tokens: room.kv_blocks * BLOCK_TOKENS,
        vocab,
        facts,
        text,
        device,
        eos,
        generation,
    })
}

/// The API over an engine that `engine` has started.
///
/// # Errors
/// When the metrics cannot be registered.
pub fn api(started: &Started, args: &ServeArgs) -> Result<Api, StartError> {
    let served = Served {
        model: args
            .model_id
            .as_ref()
            .unwrap_or(&started.name)
            .as_str()
            .into(),
        name: args.name.clone(),
        device: started.device.clone(),
        instance: Served::new_instance(),
        context_max: started.context_max,
        vocab: started.vocab,
        eos: started.eos.clone(),
        defaults: defaults(&started.generation),
        prefix_cache: !args.engine.no_prefix_cache,
        trust_hints: args.trust_hints,
    };
    let engine = started.engine.clone();
    Ok(Api::new(
        engine,
        started.text.clone(),
        started.text.clone(),
        served,
    )?)
}

fn defaults(of_model: &GenerationDefaults) -> SamplingDefaults {
    let plain = SamplingDefaults::default();
    SamplingDefaults {
        temperature: of_model.temperature.unwrap_or(plain.temperature),
        top_p: of_model.top_p.unwrap_or(plain.top_p),
        top_k: of_model.top_k.unwrap_or(plain.top_k),
        min_p: of_model.min_p.unwrap_or(plain.min_p),
        repetition_penalty: of_model
            .repetition_penalty
            .unwrap_or(plain.repetition_penalty),
    }
}

fn facts(
    args: &EngineArgs,
    name: &str,
    config: &ModelConfig,
    room: &Room,
    compute: &Compute,
) -> Vec<String> {
    let from = match &args.model {
        ModelSource::Builtin => "inside this program".to_owned(),
        ModelSource::Path(path) => format!("from {}", path.display()),
    };
    let cache = if args.no_prefix_cache {
        "off: for measurements only"
    } else {
        "on"
    };
    vec![
        format!("model      {name} {from}"),
        format!(
            "sizes      {:?}, {} layers of width {}, {} heads on {}, {} tokens known",
            config.family,
            config.layers,
            config.hidden,
            config.heads,
            config.kv_heads,
            config.vocab
        ),
        format!(
            "context    {} tokens ({})",
            room.context_max, room.context_why
        ),
        format!("device     {} ({})", compute.name, compute.why),
        format!(
            "kv cache   {} tokens in {} blocks of {BLOCK_TOKENS}, {} MiB; prefix cache {cache}",
            room.kv_blocks * BLOCK_TOKENS,
            room.kv_blocks,
            room.kv_bytes >> 20
        ),
    ]
}
