//! The contract as plain code: scalar, one thread, every weight as f32. Slow, obvious and kept for ever.

mod attention;
mod mixture;

use std::ops::Range;

pub use attention::KvPool;

use super::dequant::dequantise;
use super::host::{HostBuffer, HostStep, floats_of};
use super::mixture::HostRouting;
use super::numeric::{self, LANES};
use super::{Backend, BackendError, HeadShape, KvShape, MixtureShape, RopeTable};
use crate::engine::step::StepBatch;
use crate::loader::tensor::TensorView;
use crate::model::config::RopeStyle;
use replica_core::BLOCK_TOKENS;

/// The reference backend.
#[derive(Debug, Default)]
pub struct Reference;

/// A weight `(out, in)`, row by row.
#[derive(Debug)]
pub struct Matrix {
    cols: usize,
    values: Vec<f32>,
}

impl Backend for Reference {
    type Matrix = Matrix;
    type Vector = Vec<f32>;
    type Buffer = HostBuffer;
    type KvPool = KvPool;
    type Step = HostStep;
    type Experts = Vec<Matrix>;
    type Routing = HostRouting;

    fn name(&self) -> &'static str {
        "reference"
    }

    fn upload_matrix(&mut self, parts: &[TensorView<'_>]) -> Result<Matrix, BackendError> {
        let cols = parts.first().map_or(0, |part| part.cols);
        Ok(Matrix {
            cols,
            values: parts.iter().flat_map(dequantise).collect(),
        })
    }

    fn upload_vector(&mut self, values: &[f32]) -> Result<Vec<f32>, BackendError> {
        Ok(values.to_vec())
    }

    fn new_buffer(&mut self, rows_max: usize, width: usize) -> Result<HostBuffer, BackendError> {
        HostBuffer::new(rows_max, width)
    }

    fn new_kv_pool(&mut self, shape: KvShape) -> Result<KvPool, BackendError> {
        let KvShape {
            layers,
            blocks,
            heads,
        } = shape;
        let floats = floats_of(&[layers, blocks, BLOCK_TOKENS, heads.kv_width()])?;
        Ok(KvPool {
            shape,
            keys: vec![0.0; floats],
            values: vec![0.0; floats],
        })
    }

    fn upload_step(&mut self, batch: &StepBatch<'_>) -> Result<HostStep, BackendError> {
        Ok(HostStep::new(batch))
    }

    fn embed(&mut self, table: &Matrix, step: &HostStep, out: &mut HostBuffer) {
        for (row, &token) in step.tokens.iter().enumerate() {
            let at = token as usize * table.cols;
            out.row_mut(row)
                .copy_from_slice(&table.values[at..at + table.cols]);
        }
    }

    fn rms_norm(
        &mut self,
        rows: usize,
        x: &HostBuffer,
        weight: &Vec<f32>,
        eps: f32,
        out: &mut HostBuffer,
    ) {
        for row in 0..rows {
            out.row_mut(row).copy_from_slice(x.row(row));
            normalise(out.row_mut(row), weight, eps);
        }
    }

    fn add(&mut self, rows: usize, x: &mut HostBuffer, y: &HostBuffer) {
        for row in 0..rows {
            x.row_mut(row)
                .iter_mut()
                .zip(y.row(row))
                .for_each(|(x, y)| *x += y);
        }
    }

    fn matmul(&mut self, rows: usize, weight: &Matrix, x: &HostBuffer, out: &mut HostBuffer) {
        for row in 0..rows {
            let weights = weight.values.chunks_exact(weight.cols);
            for (o, w) in out.row_mut(row).iter_mut().zip(weights) {
                *o = attention::dot(w, x.row(row));
            }
        }
    }

    fn qk_norm(
        &mut self,
        rows: usize,
        qkv: &mut HostBuffer,
        heads: HeadShape,
        (q_weight, k_weight): (&Vec<f32>, &Vec<f32>),
        eps: f32,
    ) {
        for row in 0..rows {
            let (q, kv) = qkv.row_mut(row).split_at_mut(heads.q_width());
            let (k, _) = kv.split_at_mut(heads.kv_width());
            q.chunks_exact_mut(heads.head_dim)
                .for_each(|head| normalise(head, q_weight, eps));
            k.chunks_exact_mut(heads.head_dim)
                .for_each(|head| normalise(head, k_weight, eps));
        }
    }

    fn rope(
        &mut self,
        step: &HostStep,
        table: &RopeTable<Vec<f32>>,
        heads: HeadShape,
        qkv: &mut HostBuffer,
    ) {
        let half = heads.head_dim / 2;
        for (row, &position) in step.positions.iter().enumerate() {
            let at = position as usize * half;
            let turn = (&table.cos[at..at + half], &table.sin[at..at + half]);
            let turned = heads.q_width() + heads.kv_width();
            for head in qkv.row_mut(row)[..turned].chunks_exact_mut(heads.head_dim) {
                rotate(head, turn, table.style);
            }
        }
    }

    fn kv_write(&mut self, step: &HostStep, layer: usize, qkv: &HostBuffer, pool: &mut KvPool) {
        let heads = pool.shape.heads;
        let (q, kv, dim) = (heads.q_width(), heads.kv_width(), heads.head_dim);
        for sequence in &step.sequences {
            for row in sequence.rows.clone() {
                let place = sequence.place(step.positions[row] as usize);
                for head in 0..heads.kv_heads {
                    let at = pool.at(layer, place, head);
                    let from = q + head * dim;
                    pool.keys[at..at + dim].copy_from_slice(&qkv.row(row)[from..from + dim]);
                    let from = from + kv;
                    pool.values[at..at + dim].copy_from_slice(&qkv.row(row)[from..from + dim]);
                }
            }
        }
    }

    fn attention(
        &mut self,
        step: &HostStep,
        layer: usize,
        qkv: &HostBuffer,
        pool: &KvPool,
        out: &mut HostBuffer,
    ) {
        let dim = pool.shape.heads.head_dim;
        for sequence in &step.sequences {
            for row in sequence.rows.clone() {
                let position = step.positions[row] as usize;
                for head in 0..pool.shape.heads.heads {
                    let query = &qkv.row(row)[head * dim..][..dim];
                    let kv_head = head / pool.shape.heads.group();
                    let out = &mut out.row_mut(row)[head * dim..][..dim];
                    attention::attend(pool, layer, sequence, position, (kv_head, query), out);
                }
            }
        }
    }

    fn silu_mul(&mut self, rows: usize, gate_up: &HostBuffer, out: &mut HostBuffer) {
        for row in 0..rows {
            let (gate, up) = gate_up.row(row).split_at(out.width);
            for (o, (&g, &u)) in out.row_mut(row).iter_mut().zip(gate.iter().zip(up)) {
                *o = numeric::silu(g) * u;
            }
        }
    }

    fn upload_experts(
        &mut self,
        experts: &[Vec<TensorView<'_>>],
    ) -> Result<Vec<Matrix>, BackendError> {
        experts
            .iter()
            .map(|parts| self.upload_matrix(parts))
            .collect()
    }

    fn new_routing(
        &mut self,
        rows_max: usize,
        shape: MixtureShape,
    ) -> Result<HostRouting, BackendError> {
        HostRouting::new(rows_max, shape)
    }

    fn route(
        &mut self,
        rows: usize,
        layer: usize,
        logits: &mut HostBuffer,
        routing: &mut HostRouting,
    ) {
        mixture::route(rows, layer, logits, routing);
    }

    fn scatter(&mut self, routing: &HostRouting, x: &HostBuffer, out: &mut HostBuffer) {
        mixture::scatter(routing, x, out);
    }

    fn expert_matmul(
        &mut self,
        routing: &HostRouting,
        experts: &Vec<Matrix>,
        x: &HostBuffer,
        out: &mut HostBuffer,
    ) {
        mixture::matmul(routing, experts, x, out);
    }

    fn combine(&mut self, routing: &HostRouting, x: &HostBuffer, out: &mut HostBuffer) {
        mixture::combine(routing, x, out);
    }

    fn take_expert_counts(
        &mut self,
        routing: &mut HostRouting,
        counts: &mut Vec<u32>,
    ) -> Result<(), BackendError> {
        routing.take_counts(counts);
        Ok(())
    }

    fn gather_wanted(
        &mut self,
        step: &HostStep,
        wanted: Range<usize>,
        x: &HostBuffer,
        out: &mut HostBuffer,
    ) {
        for (to, &from) in step.wanted[wanted].iter().enumerate() {
            out.row_mut(to).copy_from_slice(x.row(from));
        }
    }

    fn read_back(
        &mut self,
        rows: usize,
        x: &HostBuffer,
        out: &mut Vec<f32>,
    ) -> Result<(), BackendError> {
        out.extend_from_slice(x.rows(rows));
        Ok(())
    }
}

/// x (n) = x · (1 / sqrt(mean(x²) + eps)) · weight (n).
fn normalise(x: &mut [f32], weight: &[f32], eps: f32) {
    let mut lanes = [0.0; LANES];
    for (i, &x) in x.iter().enumerate() {
        lanes[i % LANES] = x.mul_add(x, lanes[i % LANES]);
    }
    let mean = numeric::fold_lanes(lanes) / x.len() as f32;
    let scale = 1.0 / (mean + eps).sqrt();
    x.iter_mut()
        .zip(weight)
        .for_each(|(x, w)| *x = *x * scale * w);
}

/// Turns the pairs of one head (head_dim) by the angles whose (cos, sin) are given (head_dim / 2).
pub(super) fn rotate(head: &mut [f32], (cos, sin): (&[f32], &[f32]), style: RopeStyle) {
    let half = cos.len();
    for (i, (&c, &s)) in cos.iter().zip(sin).enumerate() {
        let (a, b) = match style {
            RopeStyle::Half => (i, i + half),
            RopeStyle::Interleaved => (2 * i, 2 * i + 1),
        };
        (head[a], head[b]) = (head[a] * c - head[b] * s, head[b] * c + head[a] * s);
    }
}
