//! K and V in blocks, laid out for the kernels: keys in strips of sixteen positions, values in strips of sixteen
//! elements.

use replica_core::BLOCK_TOKENS;

use super::super::host::{Floats, HostBuffer, HostStep, floats_of};
use super::super::numeric::LANES;
use super::super::{BackendError, HeadShape, KvShape};

const _: () = assert!(BLOCK_TOKENS == LANES, "a block's keys are one strip");

/// K and V of all layers.
#[derive(Debug)]
pub struct KvPool {
    pub(super) shape: KvShape,
    /// Strips of sixteen in a value head; the last is filled up with zeros.
    pub(super) value_strips: usize,
    /// (layers, blocks, kv_heads, head_dim, BLOCK_TOKENS)
    keys: Floats,
    /// (layers, blocks, kv_heads, BLOCK_TOKENS, value_strips · LANES)
    values: Floats,
}

impl KvPool {
    pub(super) fn new(shape: KvShape) -> Result<Self, BackendError> {
        let KvShape {
            layers,
            blocks,
            heads,
        } = shape;
        let value_strips = heads.head_dim.div_ceil(LANES);
        let per_head = [layers, blocks, heads.kv_heads, BLOCK_TOKENS];
        let keys = floats_of(&[&per_head[..], &[heads.head_dim]].concat())?;
        let values = floats_of(&[&per_head[..], &[value_strips * LANES]].concat())?;
        let (keys, values) = (Floats::zeroed(keys), Floats::zeroed(values));
        Ok(Self {
            shape,
            value_strips,
            keys,
            values,
        })
    }

    /// Number of a head's block among all.
    fn index(&self, layer: usize, block: usize, head: usize) -> usize {
        (layer * self.shape.blocks + block) * self.shape.heads.kv_heads + head
    }

    /// (head_dim) vectors, each an element of all positions of the block.
    #[inline(always)]
    pub(super) fn key_block(&self, layer: usize, block: usize, head: usize) -> &[[f32; LANES]] {
        let dim = self.shape.heads.head_dim;
        &self.keys.vectors()[self.index(layer, block, head) * dim..][..dim]
    }

    /// (BLOCK_TOKENS, value_strips) vectors, each sixteen elements of one position.
    #[inline(always)]
    pub(super) fn value_block(&self, layer: usize, block: usize, head: usize) -> &[[f32; LANES]] {
        let vectors = BLOCK_TOKENS * self.value_strips;
        &self.values.vectors()[self.index(layer, block, head) * vectors..][..vectors]
    }

    /// See `Backend::kv_write`. Plain copies, a few microseconds for a prefill chunk, so one thread does it.
    pub(super) fn write(&mut self, step: &HostStep, layer: usize, qkv: &HostBuffer) {
        let HeadShape {
            kv_heads, head_dim, ..
        } = self.shape.heads;
        let (q, kv) = (self.shape.heads.q_width(), self.shape.heads.kv_width());
        let padded = self.value_strips * LANES;
        for sequence in &step.sequences {
            for row in sequence.rows.clone() {
                let (block, offset) = sequence.place(step.positions[row] as usize);
                let row = qkv.row(row);
                for head in 0..kv_heads {
                    let at = self.index(layer, block, head) * BLOCK_TOKENS;
                    let key = &row[q + head * head_dim..][..head_dim];
                    let keys = &mut self.keys.all_mut()[at * head_dim..][..BLOCK_TOKENS * head_dim];
                    for (to, &from) in keys.chunks_exact_mut(BLOCK_TOKENS).zip(key) {
                        to[offset] = from;
                    }
                    let value = &row[q + kv + head * head_dim..][..head_dim];
                    let to = (at + offset) * padded;
                    self.values.all_mut()[to..to + head_dim].copy_from_slice(value);
                }
            }
        }
    }
}
