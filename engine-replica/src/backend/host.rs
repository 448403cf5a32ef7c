//! What the two backends in host memory share: aligned floats, activation buffers, and a step's tables.

use std::ops::Range;

use replica_core::BLOCK_TOKENS;

use super::BackendError;
use super::numeric::LANES;
use crate::engine::step::StepBatch;

/// Bytes of a cache line, and of the widest vector register.
const LINE_BYTES: usize = 64;

/// Zeroed floats that start on a cache line.
#[derive(Debug)]
pub(super) struct Floats {
    /// `skip` floats before the line's start, then the content.
    storage: Vec<f32>,
    skip: usize,
    len: usize,
}

impl Floats {
    /// `vec!` asks for zeroed pages, so a large pool costs memory only where it is used.
    pub(super) fn zeroed(len: usize) -> Self {
        let storage = vec![0.0; len + LINE_BYTES / size_of::<f32>()];
        let skip = storage.as_ptr().align_offset(LINE_BYTES);
        // `align_offset` may decline to answer; alignment is a matter of speed alone.
        let skip = if skip < LINE_BYTES { skip } else { 0 };
        Self { storage, skip, len }
    }

    /// All of it.
    pub(super) fn all(&self) -> &[f32] {
        &self.storage[self.skip..self.skip + self.len]
    }

    /// All of it.
    pub(super) fn all_mut(&mut self) -> &mut [f32] {
        &mut self.storage[self.skip..self.skip + self.len]
    }

    /// All of it in vectors of `LANES`; the length is a multiple of that where this is used.
    pub(super) fn vectors(&self) -> &[[f32; LANES]] {
        self.all().as_chunks().0
    }
}

/// Activations `(rows_max, width)`, row by row.
#[derive(Debug)]
pub struct HostBuffer {
    /// Elements of a row.
    pub(super) width: usize,
    pub(super) data: Floats,
}

impl HostBuffer {
    pub(super) fn new(rows_max: usize, width: usize) -> Result<Self, BackendError> {
        let len = floats_of(&[rows_max, width])?;
        Ok(Self {
            width,
            data: Floats::zeroed(len),
        })
    }

    pub(super) fn row(&self, row: usize) -> &[f32] {
        &self.data.all()[row * self.width..][..self.width]
    }

    pub(super) fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let width = self.width;
        &mut self.data.all_mut()[row * width..][..width]
    }

    /// The first `rows` rows, end to end.
    pub(super) fn rows(&self, rows: usize) -> &[f32] {
        &self.data.all()[..rows * self.width]
    }
}

/// The product of `sizes` in floats, refused where its bytes do not fit the address space.
pub(super) fn floats_of(sizes: &[usize]) -> Result<usize, BackendError> {
    let bytes_max = isize::MAX as usize - LINE_BYTES;
    sizes
        .iter()
        .try_fold(1usize, |product, &size| product.checked_mul(size))
        .filter(|&floats| floats <= bytes_max / size_of::<f32>())
        .ok_or_else(|| BackendError(format!("{sizes:?} floats do not fit this machine's memory")))
}

/// A step's tables, owned.
#[derive(Debug)]
pub struct HostStep {
    /// `(rows)` token ids.
    pub(super) tokens: Vec<u32>,
    /// `(rows)` positions.
    pub(super) positions: Vec<u32>,
    /// In row order.
    pub(super) sequences: Vec<HostSequence>,
    /// The rows whose logits are wanted, in order.
    pub(super) wanted: Vec<usize>,
}

/// One sequence of a step.
#[derive(Debug)]
pub(super) struct HostSequence {
    pub(super) rows: Range<usize>,
    /// Block `i` holds positions `16·i .. 16·i+16`.
    pub(super) blocks: Vec<u32>,
}

impl HostStep {
    pub(super) fn new(batch: &StepBatch<'_>) -> Self {
        let sequences = batch
            .sequences
            .iter()
            .map(|s| HostSequence {
                rows: s.rows.clone(),
                blocks: s.block_table.to_vec(),
            })
            .collect();
        let wanted = batch
            .sequences
            .iter()
            .filter(|s| s.wants_logits)
            .map(|s| s.rows.end - 1)
            .collect();
        Self {
            tokens: batch.tokens.to_vec(),
            positions: batch.positions.to_vec(),
            sequences,
            wanted,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.tokens.len()
    }
}

impl HostSequence {
    /// Where position `position` lies: its block's id and its place in the block.
    pub(super) fn place(&self, position: usize) -> (usize, usize) {
        (
            self.blocks[position / BLOCK_TOKENS] as usize,
            position % BLOCK_TOKENS,
        )
    }
}
