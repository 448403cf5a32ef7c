//! SIMD on a fixed set of threads.
//!
//! Every operation gives the reference's bits: kernels are written once over `Lanes`, vectors run over outputs and
//! never over the summed dimension, and each sum is one chain of fused multiply-adds in the contract's order.

mod attention;
mod kv;
mod lanes;
mod matmul;
mod matrix;
mod mixture;
mod pool;
mod rows;
mod shared;
mod strips;
mod tile;
mod tiles;

#[cfg(test)]
pub(super) mod tests;

use std::ops::Range;

pub use kv::KvPool;
pub use matrix::Matrix;

use super::host::{HostBuffer, HostStep};
use super::mixture::HostRouting;
use super::reference::rotate;
use super::{Backend, BackendError, HeadShape, KvShape, MixtureShape, RopeTable};
use crate::engine::step::StepBatch;
use crate::loader::tensor::TensorView;
use lanes::Isa;
use matmul::Group;
use pool::Pool;
use rows::{Normalise, SiluMul, each_row};

/// The CPU backend.
pub struct Cpu {
    pool: Pool,
    isa: Isa,
    matmul: matmul::Scratch,
    attention: attention::Scratches,
}

impl Cpu {
    /// A backend on this many threads, the caller's among them; `None` takes one a core.
    pub fn new(threads: Option<usize>) -> Self {
        Self::with_isa(threads, Isa::best())
    }

    fn with_isa(threads: Option<usize>, isa: Isa) -> Self {
        let pool = Pool::new(threads);
        let matmul = matmul::Scratch::new(pool.threads());
        let attention = (0..pool.threads()).map(|_| Default::default()).collect();
        Self {
            pool,
            isa,
            matmul,
            attention,
        }
    }
}

impl Backend for Cpu {
    type Matrix = Matrix;
    type Vector = Vec<f32>;
    type Buffer = HostBuffer;
    type KvPool = KvPool;
    type Step = HostStep;
    type Experts = Vec<Matrix>;
    type Routing = HostRouting;

    fn name(&self) -> &'static str {
        "cpu"
    }

    fn upload_matrix(&mut self, parts: &[TensorView<'_>]) -> Result<Matrix, BackendError> {
        Ok(Matrix::pack(parts))
    }

    fn upload_vector(&mut self, values: &[f32]) -> Result<Vec<f32>, BackendError> {
        Ok(values.to_vec())
    }

    fn new_buffer(&mut self, rows_max: usize, width: usize) -> Result<HostBuffer, BackendError> {
        HostBuffer::new(rows_max, width)
    }

    fn new_kv_pool(&mut self, shape: KvShape) -> Result<KvPool, BackendError> {
        KvPool::new(shape)
    }

    fn upload_step(&mut self, batch: &StepBatch<'_>) -> Result<HostStep, BackendError> {
        Ok(HostStep::new(batch))
    }

    fn embed(&mut self, table: &Matrix, step: &HostStep, out: &mut HostBuffer) {
        let width = out.width;
        each_row(&mut self.pool, step.rows(), width, out, &|row, out| {
            table.read_row(step.tokens[row] as usize, out);
        });
    }

    fn rms_norm(
        &mut self,
        rows: usize,
        x: &HostBuffer,
        weight: &Vec<f32>,
        eps: f32,
        out: &mut HostBuffer,
    ) {
        let (isa, width) = (self.isa, out.width);
        each_row(&mut self.pool, rows, width, out, &|row, out| {
            out.copy_from_slice(x.row(row));
            isa.run(Normalise {
                x: out,
                weight,
                eps,
            });
        });
    }

    fn add(&mut self, rows: usize, x: &mut HostBuffer, y: &HostBuffer) {
        let width = x.width;
        each_row(&mut self.pool, rows, width, x, &|row, x| {
            x.iter_mut().zip(y.row(row)).for_each(|(x, y)| *x += y);
        });
    }

    fn matmul(&mut self, rows: usize, weight: &Matrix, x: &HostBuffer, out: &mut HostBuffer) {
        let threads = (&mut self.pool, self.isa, &mut self.matmul);
        let rows = 0..rows;
        matmul::matmul(threads, &[Group { weight, rows }], x, out);
    }

    fn qk_norm(
        &mut self,
        rows: usize,
        qkv: &mut HostBuffer,
        heads: HeadShape,
        (q_weight, k_weight): (&Vec<f32>, &Vec<f32>),
        eps: f32,
    ) {
        let isa = self.isa;
        let normed = heads.q_width() + heads.kv_width();
        each_row(&mut self.pool, rows, normed, qkv, &|_, row| {
            let (q, k) = row.split_at_mut(heads.q_width());
            for (part, weight) in [(q, q_weight), (k, k_weight)] {
                for x in part.chunks_exact_mut(heads.head_dim) {
                    isa.run(Normalise { x, weight, eps });
                }
            }
        });
    }

    fn rope(
        &mut self,
        step: &HostStep,
        table: &RopeTable<Vec<f32>>,
        heads: HeadShape,
        qkv: &mut HostBuffer,
    ) {
        let half = heads.head_dim / 2;
        let turned = heads.q_width() + heads.kv_width();
        each_row(&mut self.pool, step.rows(), turned, qkv, &|row, qk| {
            let at = step.positions[row] as usize * half;
            let turn = (&table.cos[at..at + half], &table.sin[at..at + half]);
            for head in qk.chunks_exact_mut(heads.head_dim) {
                rotate(head, turn, table.style);
            }
        });
    }

    fn kv_write(&mut self, step: &HostStep, layer: usize, qkv: &HostBuffer, pool: &mut KvPool) {
        pool.write(step, layer, qkv);
    }

    fn attention(
        &mut self,
        step: &HostStep,
        layer: usize,
        qkv: &HostBuffer,
        pool: &KvPool,
        out: &mut HostBuffer,
    ) {
        let threads = (&mut self.pool, self.isa, &self.attention);
        attention::attention(threads, (step, layer), qkv, pool, out);
    }

    fn silu_mul(&mut self, rows: usize, gate_up: &HostBuffer, out: &mut HostBuffer) {
        let (isa, width) = (self.isa, out.width);
        each_row(&mut self.pool, rows, width, out, &|row, out| {
            let (gate, up) = gate_up.row(row).split_at(width);
            isa.run(SiluMul { gate, up, out });
        });
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
        let threads = (&mut self.pool, self.isa);
        mixture::route(threads, (rows, layer), logits, routing);
    }

    fn scatter(&mut self, routing: &HostRouting, x: &HostBuffer, out: &mut HostBuffer) {
        mixture::scatter(&mut self.pool, routing, x, out);
    }

    fn expert_matmul(
        &mut self,
        routing: &HostRouting,
        experts: &Vec<Matrix>,
        x: &HostBuffer,
        out: &mut HostBuffer,
    ) {
        let threads = (&mut self.pool, self.isa, &mut self.matmul);
        mixture::expert_matmul(threads, routing, experts, x, out);
    }

    fn combine(&mut self, routing: &HostRouting, x: &HostBuffer, out: &mut HostBuffer) {
        mixture::combine((&mut self.pool, self.isa), routing, x, out);
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
