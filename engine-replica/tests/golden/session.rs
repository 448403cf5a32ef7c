//! One sequence on one loaded model.

use engine_replica::engine::step::{StepBatch, StepModel, StepSequence};
use engine_replica::loader::Weights;
use engine_replica::model::{self, BackendChoice, Capacity};

/// Positions that a KV block holds.
const BLOCK_TOKENS: usize = 16;
/// Rows of one step: less than the long prompts, so that those come in several chunks.
const ROWS_MAX: usize = 256;
const CONTEXT: usize = 2048;

pub(crate) struct Session {
    model: Box<dyn StepModel>,
    blocks: Vec<u32>,
    position: usize,
}

impl Session {
    pub(crate) fn new(weights: &Weights, backend: BackendChoice) -> Self {
        let kv_blocks = CONTEXT / BLOCK_TOKENS;
        let capacity = Capacity {
            rows_max: ROWS_MAX,
            kv_blocks,
        };
        let model = model::load(&weights.config, &weights.tensors, backend, capacity).unwrap();
        Self {
            model,
            blocks: (0..kv_blocks as u32).collect(),
            position: 0,
        }
    }

    /// Begins anew; what the blocks hold is written over.
    pub(crate) fn reset(&mut self) {
        self.position = 0;
    }

    /// The logits after the last of these tokens.
    pub(crate) fn feed(&mut self, tokens: &[u32]) -> Vec<f32> {
        let mut logits = Vec::new();
        for chunk in tokens.chunks(ROWS_MAX) {
            let end = self.position + chunk.len();
            let positions: Vec<u32> = (self.position as u32..end as u32).collect();
            let sequence = StepSequence {
                rows: 0..chunk.len(),
                block_table: &self.blocks[..end.div_ceil(BLOCK_TOKENS)],
                wants_logits: true,
            };
            let batch = StepBatch {
                tokens: chunk,
                positions: &positions,
                sequences: &[sequence],
            };
            self.model.forward(&batch, &mut logits).unwrap();
            self.position = end;
        }
        logits
    }
}
