//! Model families over a `Backend`.
//!
//! `load` checks every tensor of a checkpoint against the config, packs the weights for the chosen backend and hands
//! back a `StepModel`; `forward` is the computation, one line an operation.

mod batch;
pub mod config;
mod expert_load;
mod forward;
mod mlp;
mod problem;
mod rope;
mod tensors;
mod weights;

#[cfg(test)]
mod tests;

pub use expert_load::{ExpertLoad, LayerLoad};
pub use forward::LoadedModel;
pub use problem::{ModelError, Problem};
pub use weights::{Weights, build};

use crate::backend::Backend;
use crate::backend::cpu::Cpu;
use crate::backend::reference::Reference;
use crate::engine::step::StepModel;
use crate::loader::tensor::TensorSource;
use config::ModelConfig;

/// Which backend computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendChoice {
    /// Scalar, one thread: for comparing with, not for serving.
    Reference,
    /// SIMD on this many threads; `None` takes one a core.
    Cpu {
        /// The caller's thread among them; at least 1.
        threads: Option<usize>,
    },
}

/// How much a model is asked to hold at once; buffers of this size are made once, at load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Most rows (new tokens of all sequences) in one step.
    pub rows_max: usize,
    /// KV blocks of `BLOCK_TOKENS` positions each.
    pub kv_blocks: usize,
}

/// Checks and packs a checkpoint's tensors for the chosen backend.
pub fn load(
    config: &ModelConfig,
    tensors: &dyn TensorSource,
    choice: BackendChoice,
    capacity: Capacity,
) -> Result<Box<dyn StepModel>, ModelError> {
    match choice {
        BackendChoice::Reference => load_on(Reference, config, tensors, capacity),
        BackendChoice::Cpu { threads } => load_on(Cpu::new(threads), config, tensors, capacity),
    }
}

/// Checks and packs a checkpoint's tensors for a backend that is open already.
pub fn load_on<B: Backend>(
    mut backend: B,
    config: &ModelConfig,
    tensors: &dyn TensorSource,
    capacity: Capacity,
) -> Result<Box<dyn StepModel>, ModelError> {
    let weights = build(config, tensors, &mut backend)?;
    Ok(Box::new(LoadedModel::new(
        backend,
        config.clone(),
        weights,
        capacity,
    )?))
}
