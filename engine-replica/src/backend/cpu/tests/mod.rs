//! Every operation on every instruction set and any number of threads gives the reference's bits.

use super::super::reference::Reference;
use super::super::testing::{DTYPES, Random, Tensor, assert_same_bits};
use super::*;
use crate::engine::step::StepSequence;
use crate::loader::tensor::DType;
use crate::model::config::RopeStyle;

pub(in crate::backend) mod attention;
pub(in crate::backend) mod matmul;
mod mixture;

/// A CPU backend for each instruction set here, and several thread counts.
fn backends() -> impl Iterator<Item = (String, Cpu)> {
    Isa::available().into_iter().flat_map(|isa| {
        [1, 2, 5].map(|threads| {
            (
                format!("{isa:?} with {threads} threads"),
                Cpu::with_isa(Some(threads), isa),
            )
        })
    })
}

/// Some computation whose result is read back.
pub(in crate::backend) trait Case {
    fn run<B: Backend>(&self, backend: &mut B) -> Vec<f32>;
}

/// Runs the case on every backend and compares with the reference.
#[track_caller]
fn check(case: &impl Case, what: &str) {
    let want = case.run(&mut Reference);
    for (name, mut cpu) in backends() {
        assert_same_bits(&case.run(&mut cpu), &want, &format!("{what} on {name}"));
    }
}

/// A buffer (rows, width) with these values.
pub(in crate::backend) fn buffer<B: Backend>(b: &mut B, rows: usize, values: &[f32]) -> B::Buffer {
    let width = values.len() / rows;
    // Rows are looked up in a table of the values: activations have no other way in.
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let table = Tensor {
        dtype: DType::F32,
        rows,
        cols: width,
        data: bytes,
    };
    let table = b.upload_matrix(&[table.view()]).unwrap();
    let tokens: Vec<u32> = (0..rows as u32).collect();
    let sequences = [StepSequence {
        rows: 0..rows,
        block_table: &[],
        wants_logits: false,
    }];
    let batch = StepBatch {
        tokens: &tokens,
        positions: &tokens,
        sequences: &sequences,
    };
    let step = b.upload_step(&batch).unwrap();
    let mut buffer = b.new_buffer(rows, width).unwrap();
    b.embed(&table, &step, &mut buffer);
    buffer
}

pub(in crate::backend) fn read<B: Backend>(b: &mut B, rows: usize, buffer: &B::Buffer) -> Vec<f32> {
    let mut values = Vec::new();
    b.read_back(rows, buffer, &mut values).unwrap();
    values
}

/// One row-wise operation over random rows.
pub(in crate::backend) struct RowWise {
    pub(in crate::backend) rows: usize,
    pub(in crate::backend) width: usize,
    pub(in crate::backend) values: Vec<f32>,
    pub(in crate::backend) weight: Vec<f32>,
    pub(in crate::backend) op: RowOp,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::backend) enum RowOp {
    RmsNorm,
    Add,
    SiluMul,
    QkNorm(HeadShape),
    Rope(HeadShape, RopeStyle),
}

impl Case for RowWise {
    fn run<B: Backend>(&self, b: &mut B) -> Vec<f32> {
        let rows = self.rows;
        let mut x = buffer(b, rows, &self.values);
        let weight = b.upload_vector(&self.weight).unwrap();
        match self.op {
            RowOp::RmsNorm => {
                let mut out = b.new_buffer(rows, self.width).unwrap();
                b.rms_norm(rows, &x, &weight, 1e-5, &mut out);
                return read(b, rows, &out);
            }
            RowOp::SiluMul => {
                let mut out = b.new_buffer(rows, self.width / 2).unwrap();
                b.silu_mul(rows, &x, &mut out);
                return read(b, rows, &out);
            }
            RowOp::Add => {
                let mut reversed = self.values.clone();
                reversed.reverse();
                let y = buffer(b, rows, &reversed);
                b.add(rows, &mut x, &y);
            }
            RowOp::QkNorm(heads) => b.qk_norm(rows, &mut x, heads, (&weight, &weight), 1e-6),
            RowOp::Rope(heads, style) => {
                let (cos, sin) = (b.upload_vector(&self.weight).unwrap(), weight);
                let positions: Vec<u32> = (0..rows as u32).map(|p| p % 7).collect();
                let tokens = vec![0; rows];
                let batch = StepBatch {
                    tokens: &tokens,
                    positions: &positions,
                    sequences: &[],
                };
                let step = b.upload_step(&batch).unwrap();
                b.rope(&step, &RopeTable { cos, sin, style }, heads, &mut x);
            }
        }
        read(b, rows, &x)
    }
}

#[track_caller]
fn check_rows(rows: usize, width: usize, weights: usize, op: RowOp) {
    check(
        &RowWise::random(rows, width, weights, op),
        &format!("{op:?} ({rows}, {width})"),
    );
}

impl RowWise {
    pub(in crate::backend) fn random(rows: usize, width: usize, weights: usize, op: RowOp) -> Self {
        let mut random = Random(rows as u64 * 1_000 + width as u64);
        let mut values = random.floats(rows * width);
        // Large numbers reach the clamps of exp; one infinity and one NaN stay in their row.
        values.iter_mut().step_by(5).for_each(|v| *v *= 200.0);
        values[0] = f32::INFINITY;
        values[rows * width / 2] = f32::NAN;
        let weight = random.floats(weights);
        Self {
            rows,
            width,
            values,
            weight,
            op,
        }
    }
}

#[test]
fn row_operations_equal_the_reference() {
    for width in [1, 31, 32, 33, 257] {
        for rows in [1, 3, 200] {
            check_rows(rows, width, width, RowOp::RmsNorm);
            check_rows(rows, width, 0, RowOp::Add);
            check_rows(rows, 2 * width, 0, RowOp::SiluMul);
        }
    }
    for (heads, kv_heads, head_dim) in [(4, 2, 16), (3, 3, 6), (8, 1, 40)] {
        let shape = HeadShape {
            heads,
            kv_heads,
            head_dim,
        };
        for rows in [1, 300] {
            check_rows(rows, shape.qkv_width(), head_dim, RowOp::QkNorm(shape));
            for style in [RopeStyle::Half, RopeStyle::Interleaved] {
                let op = RowOp::Rope(shape, style);
                check_rows(rows, shape.qkv_width(), 7 * head_dim / 2, op);
            }
        }
    }
}

/// Rows of a table.
pub(in crate::backend) struct Embed(
    pub(in crate::backend) Tensor,
    pub(in crate::backend) Vec<u32>,
);

impl Case for Embed {
    fn run<B: Backend>(&self, b: &mut B) -> Vec<f32> {
        let table = b.upload_matrix(&[self.0.view()]).unwrap();
        let positions = vec![0; self.1.len()];
        let batch = StepBatch {
            tokens: &self.1,
            positions: &positions,
            sequences: &[],
        };
        let step = b.upload_step(&batch).unwrap();
        let mut out = b.new_buffer(self.1.len(), self.0.cols).unwrap();
        b.embed(&table, &step, &mut out);
        read(b, self.1.len(), &out)
    }
}

#[test]
fn embedding_reads_every_type_exactly() {
    let mut random = Random(5);
    for dtype in DTYPES {
        let tokens = vec![0, 36, 16, 15, 36, 7];
        check(
            &Embed(random.tensor(dtype, 37, 64, 3.0), tokens),
            &format!("{dtype:?}"),
        );
    }
}
