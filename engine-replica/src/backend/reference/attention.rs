//! Attention over paged K and V, one row and one head at a time.

use super::super::host::HostSequence;
use super::super::numeric::{self, LANES};
use super::super::{HeadShape, KvShape};
use replica_core::BLOCK_TOKENS;

/// K and V of all layers.
#[derive(Debug)]
pub struct KvPool {
    pub(super) shape: KvShape,
    /// (layers, blocks, BLOCK_TOKENS, kv_heads, head_dim)
    pub(super) keys: Vec<f32>,
    /// (layers, blocks, BLOCK_TOKENS, kv_heads, head_dim)
    pub(super) values: Vec<f32>,
}

impl KvPool {
    /// Where head `head` of the position at `(block, offset)` starts in `keys` and `values`.
    pub(super) fn at(&self, layer: usize, (block, offset): (usize, usize), head: usize) -> usize {
        let HeadShape {
            kv_heads, head_dim, ..
        } = self.shape.heads;
        let position = (layer * self.shape.blocks + block) * BLOCK_TOKENS + offset;
        (position * kv_heads + head) * head_dim
    }
}

/// out (head_dim) = softmax of `query` (head_dim) against the keys of positions `0..=position`, times their values.
pub(super) fn attend(
    pool: &KvPool,
    layer: usize,
    sequence: &HostSequence,
    position: usize,
    (head, query): (usize, &[f32]),
    out: &mut [f32],
) {
    let dim = query.len();
    let starts: Vec<usize> = (0..=position)
        .map(|t| pool.at(layer, sequence.place(t), head))
        .collect();
    let scale = 1.0 / (dim as f32).sqrt();
    let mut scores: Vec<f32> = starts
        .iter()
        .map(|&at| dot(query, &pool.keys[at..at + dim]) * scale)
        .collect();
    let highest = scores
        .iter()
        .fold(f32::NEG_INFINITY, |m, &s| numeric::greater(s, m));
    let mut lanes = [0.0; LANES];
    for (t, score) in scores.iter_mut().enumerate() {
        *score = numeric::exp(*score - highest);
        lanes[t % LANES] += *score;
    }
    let sum = numeric::fold_lanes(lanes);
    out.fill(0.0);
    for (&weight, &at) in scores.iter().zip(&starts) {
        for (o, &v) in out.iter_mut().zip(&pool.values[at..at + dim]) {
            *o = weight.mul_add(v, *o);
        }
    }
    out.iter_mut().for_each(|o| *o /= sum);
}

/// One fma chain in ascending order from +0.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(0.0, |acc, (&a, &b)| a.mul_add(b, acc))
}
