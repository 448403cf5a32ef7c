//! What the scheduler hands to the model in one step, and the trait that a loaded model fulfils.

use std::ops::Range;
use std::sync::Arc;

use crate::model::ExpertLoad;

/// The new tokens of every sequence of one step, laid end to end.
#[derive(Clone, Copy, Debug)]
pub struct StepBatch<'a> {
    /// `(rows)` token ids.
    pub tokens: &'a [u32],
    /// `(rows)` absolute position of each token in its own sequence.
    pub positions: &'a [u32],
    /// One entry per sequence, in row order, covering all rows without gaps.
    pub sequences: &'a [StepSequence<'a>],
}

/// One sequence's share of a step: a prefill chunk or a single decode token, which the model need not tell apart.
#[derive(Clone, Debug)]
pub struct StepSequence<'a> {
    /// Its rows in the batch; positions are consecutive.
    pub rows: Range<usize>,
    /// KV block ids, block `i` holding positions `16·i .. 16·i+16`; covers every position up to the last row's.
    pub block_table: &'a [u32],
    /// Whether the logits after its last row are wanted.
    pub wants_logits: bool,
}

/// A model ready to compute. Invariant A15: a row's result depends on the tokens before it in its own sequence and on
/// nothing else: not on the other rows, the cut into chunks, the thread count, or where its blocks lie.
pub trait StepModel: Send {
    /// Width of a row of logits.
    fn vocab(&self) -> usize;
    /// KV blocks that the model has room for.
    fn kv_blocks(&self) -> usize;
    /// Computes one step: writes the new rows' K and V into their blocks, then fills `logits` with one row of
    /// `vocab()` floats for each sequence that wants them, in order. `logits` is cleared first.
    fn forward(&mut self, batch: &StepBatch<'_>, logits: &mut Vec<f32>) -> Result<(), StepError>;
    /// How its experts are used, for whoever watches from another thread; `None` where it has none.
    fn expert_load(&self) -> Option<Arc<ExpertLoad>> {
        None
    }
}

/// Why a step could not be computed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct StepError(pub String);
