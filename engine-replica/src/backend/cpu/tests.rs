//! Every operation on every instruction set and any number of threads gives the reference's bits.

use super::super::reference::Reference;
use super::super::testing::{DTYPES, Random, Tensor, assert_same_bits};
use super::*;
use crate::engine::step::StepSequence;
use crate::loader::tensor::{DType, QUANT_BLOCK};
use crate::model::config::RopeStyle;
use replica_core::BLOCK_TOKENS;

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
trait Case {
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
fn buffer<B: Backend>(b: &mut B, rows: usize, values: &[f32]) -> B::Buffer {
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

fn read<B: Backend>(b: &mut B, rows: usize, buffer: &B::Buffer) -> Vec<f32> {
    let mut values = Vec::new();
    b.read_back(rows, buffer, &mut values).unwrap();
    values
}

struct Matmul {
    parts: Vec<Tensor>,
    rows: usize,
    x: Vec<f32>,
}

impl Case for Matmul {
    fn run<B: Backend>(&self, b: &mut B) -> Vec<f32> {
        let views: Vec<_> = self.parts.iter().map(Tensor::view).collect();
        let weight = b.upload_matrix(&views).unwrap();
        let x = buffer(b, self.rows, &self.x);
        let outputs = self.parts.iter().map(|p| p.rows).sum();
        let mut out = b.new_buffer(self.rows, outputs).unwrap();
        b.matmul(self.rows, &weight, &x, &mut out);
        read(b, self.rows, &out)
    }
}

/// Numbers of rows that reach every height of tile, with and without rows to fill up.
const ROW_COUNTS: [usize; 11] = [1, 2, 3, 4, 6, 7, 8, 12, 13, 31, 33];

#[test]
fn matmul_equals_the_reference_for_every_type_and_shape() {
    let mut random = Random(1);
    for dtype in DTYPES {
        for (outputs, cols) in [
            (1, 1usize),
            (16, 32),
            (31, 33),
            (33, 64),
            (80, 31),
            (257, 96),
        ] {
            let quantised = dtype.bytes(QUANT_BLOCK) < 2 * QUANT_BLOCK;
            let cols = if quantised {
                cols.next_multiple_of(QUANT_BLOCK)
            } else {
                cols
            };
            for rows in ROW_COUNTS {
                let parts = vec![random.tensor(dtype, outputs, cols, 1.0)];
                let x = random.floats(rows * cols);
                let what = format!("{dtype:?} ({outputs}, {cols}) times {rows} rows");
                check(&Matmul { parts, rows, x }, &what);
            }
        }
    }
}

#[test]
fn matmul_of_many_rows_equals_the_reference() {
    let mut random = Random(2);
    let parts = vec![random.tensor(DType::Q4_1, 100, 64, 1.0)];
    let x = random.floats(257 * 64);
    check(
        &Matmul {
            parts,
            rows: 257,
            x,
        },
        "257 rows",
    );
}

#[test]
fn matmul_parts_may_differ_in_type_and_end_between_strips() {
    let mut random = Random(3);
    for rows in [1, 5, 30] {
        let parts = vec![
            random.tensor(DType::Q4_1, 17, 64, 1.0),
            random.tensor(DType::F16, 1, 64, 1.0),
            random.tensor(DType::Q8_0, 48, 64, 1.0),
        ];
        let x = random.floats(rows * 64);
        check(&Matmul { parts, rows, x }, "three parts");
    }
}

#[test]
fn a_row_of_nan_or_infinity_leaves_the_other_rows_alone() {
    let mut random = Random(4);
    let weight = random.tensor(DType::Q4_0, 40, 32, 1.0);
    for rows in [2, 5, 13, 30] {
        let clean = random.floats(rows * 32);
        for broken in [f32::NAN, f32::INFINITY] {
            let mut x = clean.clone();
            x[32..64].fill(broken);
            for (name, mut cpu) in backends() {
                let run = |b: &mut Cpu, x: Vec<f32>| {
                    Matmul {
                        parts: vec![weight.clone()],
                        rows,
                        x,
                    }
                    .run(b)
                };
                let (want, mut got) = (run(&mut cpu, clean.clone()), run(&mut cpu, x.clone()));
                got[40..80].copy_from_slice(&want[40..80]);
                assert_same_bits(&got, &want, &name);
            }
        }
    }
}

/// One row-wise operation over random rows.
struct RowWise {
    rows: usize,
    width: usize,
    values: Vec<f32>,
    weight: Vec<f32>,
    op: RowOp,
}

#[derive(Clone, Copy, Debug)]
enum RowOp {
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
    let mut random = Random(rows as u64 * 1_000 + width as u64);
    let mut values = random.floats(rows * width);
    // Large numbers reach the clamps of exp; one infinity and one NaN stay in their row.
    values.iter_mut().step_by(5).for_each(|v| *v *= 200.0);
    values[0] = f32::INFINITY;
    values[rows * width / 2] = f32::NAN;
    let weight = random.floats(weights);
    check(
        &RowWise {
            rows,
            width,
            values,
            weight,
            op,
        },
        &format!("{op:?} ({rows}, {width})"),
    );
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

#[test]
fn embedding_reads_every_type_exactly() {
    struct Embed(Tensor, Vec<u32>);
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
    let mut random = Random(5);
    for dtype in DTYPES {
        let tokens = vec![0, 36, 16, 15, 36, 7];
        check(
            &Embed(random.tensor(dtype, 37, 64, 3.0), tokens),
            &format!("{dtype:?}"),
        );
    }
}

/// A prefill in chunks of two sequences, side by side, over blocks in a shuffled order.
struct Attention {
    shape: HeadShape,
    /// Rows of each sequence in each step.
    chunks: Vec<[usize; 2]>,
    seed: u64,
}

impl Case for Attention {
    fn run<B: Backend>(&self, b: &mut B) -> Vec<f32> {
        let mut random = Random(self.seed);
        let totals = [0, 1].map(|s| self.chunks.iter().map(|c| c[s]).sum::<usize>());
        let blocks = totals.map(|t| t.div_ceil(BLOCK_TOKENS));
        // Ids are handed out from the far end, alternating.
        let pool_blocks = 2 * blocks[0].max(blocks[1]) + 2;
        let tables: [Vec<u32>; 2] = [0, 1].map(|s| {
            (0..blocks[s])
                .map(|i| (pool_blocks - 1 - 2 * i - s) as u32)
                .collect()
        });
        let shape = KvShape {
            layers: 2,
            blocks: pool_blocks,
            heads: self.shape,
        };
        let mut pool = b.new_kv_pool(shape).unwrap();
        let mut done = [0; 2];
        let mut result = Vec::new();
        for chunk in &self.chunks {
            let rows = chunk[0] + chunk[1];
            let positions: Vec<u32> = [0, 1]
                .iter()
                .flat_map(|&s| (done[s]..done[s] + chunk[s]).map(|p| p as u32))
                .collect();
            let ranges = [0..chunk[0], chunk[0]..rows];
            let sequences: Vec<StepSequence<'_>> = ranges
                .into_iter()
                .zip(&tables)
                .filter(|(rows, _)| !rows.is_empty())
                .map(|(rows, table)| StepSequence {
                    rows,
                    block_table: table,
                    wants_logits: true,
                })
                .collect();
            let tokens = vec![0; rows];
            let batch = StepBatch {
                tokens: &tokens,
                positions: &positions,
                sequences: &sequences,
            };
            let step = b.upload_step(&batch).unwrap();
            let qkv = random.floats(rows * self.shape.qkv_width());
            let qkv = buffer(b, rows, &qkv);
            let mut out = b.new_buffer(rows, self.shape.q_width()).unwrap();
            b.kv_write(&step, 1, &qkv, &mut pool);
            b.attention(&step, 1, &qkv, &pool, &mut out);
            result.extend(read(b, rows, &out));
            done = [done[0] + chunk[0], done[1] + chunk[1]];
        }
        result
    }
}

#[test]
fn attention_equals_the_reference_for_any_heads_and_chunks() {
    let shapes = [
        (9, 3, 64),
        (4, 4, 16),
        (2, 1, 6),
        (8, 1, 40),
        (5, 5, 128),
        (3, 1, 80),
        (12, 2, 20),
    ];
    for (seed, (heads, kv_heads, head_dim)) in shapes.into_iter().enumerate() {
        let shape = HeadShape {
            heads,
            kv_heads,
            head_dim,
        };
        for chunks in [
            vec![[1, 0], [1, 1], [1, 1]],
            vec![[15, 2], [1, 31], [1, 1], [34, 0]],
            vec![[70, 5], [1, 90], [1, 1]],
        ] {
            let what = format!("{shape:?} in {chunks:?}");
            check(
                &Attention {
                    shape,
                    chunks,
                    seed: seed as u64,
                },
                &what,
            );
        }
    }
}

#[test]
fn attention_reads_nothing_past_a_rows_own_position() {
    // The block is written full of NaN first, then its first positions with numbers.
    let shape = HeadShape {
        heads: 6,
        kv_heads: 2,
        head_dim: 16,
    };
    struct Stale(HeadShape);
    impl Case for Stale {
        fn run<B: Backend>(&self, b: &mut B) -> Vec<f32> {
            let heads = self.0;
            let mut pool = b
                .new_kv_pool(KvShape {
                    layers: 1,
                    blocks: 3,
                    heads,
                })
                .unwrap();
            let mut step_of = |b: &mut B, start: u32, rows: usize, value: Option<f32>| {
                let positions: Vec<u32> = (start..start + rows as u32).collect();
                let tokens = vec![0; rows];
                let sequences = [StepSequence {
                    rows: 0..rows,
                    block_table: &[2, 0],
                    wants_logits: true,
                }];
                let batch = StepBatch {
                    tokens: &tokens,
                    positions: &positions,
                    sequences: &sequences,
                };
                let step = b.upload_step(&batch).unwrap();
                let count = rows * heads.qkv_width();
                let qkv = value.map_or_else(|| Random(6).floats(count), |v| vec![v; count]);
                let qkv = buffer(b, rows, &qkv);
                b.kv_write(&step, 0, &qkv, &mut pool);
                let mut out = b.new_buffer(rows, heads.q_width()).unwrap();
                b.attention(&step, 0, &qkv, &pool, &mut out);
                read(b, rows, &out)
            };
            step_of(b, 0, 32, Some(f32::NAN));
            let clean = step_of(b, 0, 20, None);
            assert!(clean.iter().all(|v| v.is_finite()));
            clean
        }
    }
    check(&Stale(shape), "after NaN");
}
