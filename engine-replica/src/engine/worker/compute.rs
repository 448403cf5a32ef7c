//! A plan to the model's terms, and its answer checked.

use replica_core::plan::Plan;

use super::Worker;
use crate::engine::step::{StepBatch, StepError, StepSequence};

impl Worker {
    /// Runs the model over the planned tokens; the logits wanted end up in `self.logits`, in the plan's order.
    pub(super) fn compute(&mut self, plan: &Plan) -> Result<(), StepError> {
        let mut tokens = Vec::with_capacity(plan.tokens());
        let mut positions = Vec::with_capacity(plan.tokens());
        let mut sequences = Vec::with_capacity(plan.slices.len());
        for slice in &plan.slices {
            let Some(sequence) = self.scheduler.sequence(slice.id) else {
                continue;
            };
            let first = tokens.len();
            tokens.extend_from_slice(&sequence.tokens()[slice.positions.clone()]);
            positions.extend(slice.positions.clone().map(|position| position as u32));
            sequences.push(StepSequence {
                rows: first..tokens.len(),
                block_table: sequence.block_table(),
                wants_logits: slice.wants_logits,
            });
        }
        let batch = StepBatch {
            tokens: &tokens,
            positions: &positions,
            sequences: &sequences,
        };
        self.model.forward(&batch, &mut self.logits)?;
        let wanted = sequences
            .iter()
            .filter(|sequence| sequence.wants_logits)
            .count();
        let (got, expected) = (self.logits.len(), wanted * self.model.vocab());
        if got != expected {
            return Err(StepError(format!(
                "the model gave {got} logits instead of {expected}"
            )));
        }
        Ok(())
    }
}
