//! What lies on the GPU.

use cudarc::driver::CudaSlice;
use replica_core::BLOCK_TOKENS;

use super::device::{Arg, Device};
use crate::backend::host::floats_of;
use crate::backend::{BackendError, KvShape};
use crate::engine::step::StepBatch;
use crate::loader::tensor::{DType, TensorView};

/// A weight `(out, in)` of one or more parts, as their bytes lie in the file.
#[derive(Debug)]
pub struct Matrix {
    /// Inputs.
    pub(super) cols: usize,
    /// In order of outputs.
    pub(super) parts: Vec<Part>,
}

/// Some consecutive outputs of a matrix.
#[derive(Debug)]
pub(super) struct Part {
    /// Number of the first output in the whole matrix.
    pub(super) first: usize,
    /// Outputs.
    pub(super) rows: usize,
    pub(super) dtype: DType,
    pub(super) data: CudaSlice<u8>,
}

impl Matrix {
    pub(super) fn upload(device: &Device, views: &[TensorView<'_>]) -> Result<Self, BackendError> {
        let mut first = 0;
        let parts = views.iter().map(|view| {
            let part = Part {
                first,
                rows: view.rows,
                dtype: view.dtype,
                data: device.upload(view.data)?,
            };
            first += view.rows;
            Ok(part)
        });
        Ok(Self {
            parts: parts.collect::<Result<_, BackendError>>()?,
            cols: views.first().map_or(0, |view| view.cols),
        })
    }
}

/// Activations `(rows_max, width)`, row by row.
#[derive(Debug)]
pub struct Buffer {
    /// Elements of a row.
    pub(super) width: usize,
    pub(super) data: CudaSlice<f32>,
}

impl Buffer {
    pub(super) fn new(
        device: &Device,
        rows_max: usize,
        width: usize,
    ) -> Result<Self, BackendError> {
        let data = device.room(floats_of(&[rows_max, width])?)?;
        Ok(Self { width, data })
    }
}

/// K and V of all layers, each (layers, blocks, BLOCK_TOKENS, kv_heads, head_dim).
#[derive(Debug)]
pub struct KvPool {
    pub(super) shape: KvShape,
    pub(super) keys: CudaSlice<f32>,
    pub(super) values: CudaSlice<f32>,
}

impl KvPool {
    pub(super) fn new(device: &Device, shape: KvShape) -> Result<Self, BackendError> {
        let floats = floats_of(&[
            shape.layers,
            shape.blocks,
            BLOCK_TOKENS,
            shape.heads.kv_width(),
        ])?;
        Ok(Self {
            shape,
            keys: device.room(floats)?,
            values: device.room(floats)?,
        })
    }

    /// Floats before a layer.
    pub(super) fn before(&self, layer: usize) -> usize {
        layer * self.shape.blocks * BLOCK_TOKENS * self.shape.heads.kv_width()
    }
}

/// A step's tables, one after the other in one piece, so that a step costs one copy.
#[derive(Debug)]
pub struct Step {
    pub(super) rows: usize,
    data: CudaSlice<u32>,
    /// Where each table begins.
    at: [usize; 5],
}

/// The tables of a step, in order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Table {
    /// (rows)
    Tokens,
    /// (rows)
    Positions,
    /// (rows): where the blocks of the row's sequence begin in `Blocks`.
    Sequences,
    /// The rows whose logits are wanted, in order.
    Wanted,
    /// The block tables of all sequences, end to end.
    Blocks,
}

impl Step {
    pub(super) fn upload(device: &Device, batch: &StepBatch<'_>) -> Result<Self, BackendError> {
        let rows = batch.tokens.len();
        let mut sequences = vec![0; rows];
        let mut blocks: Vec<u32> = Vec::new();
        let mut wanted = Vec::new();
        for sequence in batch.sequences {
            sequences[sequence.rows.clone()].fill(blocks.len() as u32);
            blocks.extend_from_slice(sequence.block_table);
            if sequence.wants_logits {
                wanted.push((sequence.rows.end - 1) as u32);
            }
        }
        let mut all = Vec::new();
        let tables = [batch.tokens, batch.positions, &sequences, &wanted, &blocks];
        let at = tables.map(|table| {
            all.extend_from_slice(table);
            all.len() - table.len()
        });
        let data = device.upload(&all)?;
        Ok(Self { rows, data, at })
    }

    /// Where a table begins on the GPU.
    pub(super) fn table(&self, device: &Device, table: Table) -> Arg {
        self.skipped(device, table, 0)
    }

    /// Where a table begins after its first `skip` entries.
    pub(super) fn skipped(&self, device: &Device, table: Table, skip: usize) -> Arg {
        device.at(&self.data, self.at[table as usize] + skip)
    }
}
