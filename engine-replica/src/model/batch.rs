//! Whether a step is one that the model can compute: everything the backends then take as true.

use replica_core::BLOCK_TOKENS;

use crate::engine::step::{StepBatch, StepError, StepSequence};

/// What a step must fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Token ids are below this.
    pub(super) vocab: usize,
    /// Rows of one step.
    pub(super) rows_max: usize,
    /// Block ids are below this.
    pub(super) kv_blocks: usize,
    /// Positions are below this.
    pub(super) positions: usize,
}

/// Refuses a step that does not fit `limits` or does not hold together, with the first thing wrong.
pub(super) fn check(batch: &StepBatch<'_>, limits: Limits) -> Result<(), StepError> {
    let rows = batch.tokens.len();
    if rows > limits.rows_max {
        return refuse(format!(
            "{rows} rows in one step, at most {} fit",
            limits.rows_max
        ));
    }
    if batch.positions.len() != rows {
        return refuse(format!(
            "{rows} tokens but {} positions",
            batch.positions.len()
        ));
    }
    if let Some(token) = batch.tokens.iter().find(|&&t| t as usize >= limits.vocab) {
        return refuse(format!(
            "token id {token} is not below the vocabulary's {}",
            limits.vocab
        ));
    }
    let mut next = 0;
    for sequence in batch.sequences {
        if sequence.rows.start != next || sequence.rows.is_empty() || sequence.rows.end > rows {
            return refuse(format!(
                "sequence rows {:?} do not follow row {next}",
                sequence.rows
            ));
        }
        next = sequence.rows.end;
        check_sequence(sequence, &batch.positions[sequence.rows.clone()], limits)?;
    }
    if next != rows {
        return refuse(format!("{rows} rows but the sequences end at {next}"));
    }
    Ok(())
}

fn check_sequence(
    sequence: &StepSequence<'_>,
    positions: &[u32],
    limits: Limits,
) -> Result<(), StepError> {
    let rows = &sequence.rows;
    if !positions
        .windows(2)
        .all(|pair| pair[0].checked_add(1) == Some(pair[1]))
    {
        return refuse(format!(
            "positions of rows {rows:?} are not consecutive: {positions:?}"
        ));
    }
    let end = positions.last().map_or(0, |&p| p as usize + 1);
    if end > limits.positions {
        return refuse(format!(
            "rows {rows:?} end at {end}, past the {} that fit",
            limits.positions
        ));
    }
    let covered = sequence.block_table.len() * BLOCK_TOKENS;
    if covered < end {
        return refuse(format!(
            "rows {rows:?} end at {end} but their blocks cover {covered}"
        ));
    }
    if let Some(block) = sequence
        .block_table
        .iter()
        .find(|&&b| b as usize >= limits.kv_blocks)
    {
        return refuse(format!(
            "block {block} is not below the pool's {}",
            limits.kv_blocks
        ));
    }
    Ok(())
}

fn refuse(what: String) -> Result<(), StepError> {
    Err(StepError(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        vocab: 10,
        rows_max: 4,
        kv_blocks: 3,
        positions: 40,
    };

    /// One sequence of the given rows; `expect` is what the refusal must say, empty for none.
    #[track_caller]
    fn check_one(tokens: &[u32], positions: &[u32], blocks: &[u32], expect: &str) {
        let sequences = [StepSequence {
            rows: 0..tokens.len(),
            block_table: blocks,
            wants_logits: true,
        }];
        let batch = StepBatch {
            tokens,
            positions,
            sequences: &sequences,
        };
        let said = check(&batch, LIMITS).err().map_or(String::new(), |e| e.0);
        assert!(
            said.contains(expect) && said.is_empty() == expect.is_empty(),
            "{said:?}"
        );
    }

    #[test]
    fn only_steps_that_hold_together_pass() {
        check_one(&[1, 2], &[15, 16], &[2, 0], "");
        check_one(&[1, 10], &[0, 1], &[0], "token id 10");
        check_one(&[1; 5], &[0, 1, 2, 3, 4], &[0], "5 rows in one step");
        check_one(&[1, 2], &[0], &[0], "1 positions");
        check_one(&[1, 2], &[0, 2], &[0], "not consecutive");
        check_one(&[1, 2], &[15, 16], &[2], "blocks cover 16");
        check_one(&[1], &[0], &[3], "block 3");
        check_one(&[1], &[40], &[0, 1, 2], "past the 40");
        check_one(&[], &[], &[], "do not follow");
    }

    #[test]
    fn rows_belong_to_exactly_one_sequence() {
        for rows in [[0..1, 2..3], [0..2, 1..3], [0..1, 1..2]] {
            let sequences = rows.map(|rows| StepSequence {
                rows,
                block_table: &[0],
                wants_logits: false,
            });
            let batch = StepBatch {
                tokens: &[0; 3],
                positions: &[0, 1, 2],
                sequences: &sequences,
            };
            assert!(check(&batch, LIMITS).is_err());
        }
    }
}
