//! Every kernel gives the reference's bits on the simulated GPU, in whatever order its threads run and with both sanitizers
//! looking on; and bugs that are planted in the kernels are found.
//!
//! With `PINION_TEST_GPU` set, the same cases run on this machine's own GPU instead.

use super::*;
use crate::backend::cpu::tests::attention::{Attention, Stale};
use crate::backend::cpu::tests::matmul::Matmul;
use crate::backend::cpu::tests::{Case, Embed, RowOp, RowWise, read};
use crate::backend::reference::Reference;
use crate::backend::testing::{DTYPES, Random, assert_same_bits};
use crate::engine::step::StepSequence;
use crate::loader::tensor::QUANT_BLOCK;
use cuda_sim::{Order, Run, Variant};

mod compiled;
mod planted;

/// What every case runs under. ThreadSanitizer makes memory of its own for each thread of a block, so it sees the small cases alone.
const RUNS: [Run<'static>; 4] = [
    run(Variant::Address, Order::Random(1)),
    run(Variant::Plain, Order::Forward),
    run(Variant::Plain, Order::Reverse),
    run(Variant::Plain, Order::Random(2)),
];

const fn run(variant: Variant, order: Order) -> Run<'static> {
    Run {
        variant,
        order,
        bug: None,
    }
}

/// The whole name of a test of this file.
fn whole(test: &str) -> String {
    let module = module_path!();
    let module = module.split_once("::").map_or(module, |(_, rest)| rest);
    format!("{module}::{test}")
}

/// Runs `cases` on a real GPU, or in processes of their own on the simulated one; `test` is the calling test's name.
#[track_caller]
fn on_gpu(test: &str, cases: impl FnOnce(&mut Cuda)) {
    on_gpu_under(&RUNS, test, cases);
}

#[track_caller]
fn on_gpu_under(runs: &[Run<'_>], test: &str, cases: impl FnOnce(&mut Cuda)) {
    if cuda_sim::inside() || std::env::var_os("PINION_TEST_GPU").is_some() {
        return cases(&mut Cuda::open(0).unwrap());
    }
    if let Some(why) = cuda_sim::missing() {
        println!("skipped: {why}");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    for run in runs {
        if run.variant == Variant::Thread
            && let Some(why) = cuda_sim::thread_missing()
        {
            println!("left out: {run:?}: {why}");
            continue;
        }
        let outcome = run.test(&whole(test), cache.path()).unwrap();
        assert!(outcome.passed, "{run:?}:\n{}", outcome.text);
    }
}

#[track_caller]
fn check(gpu: &mut Cuda, case: &impl Case, what: &str) {
    assert_same_bits(&case.run(gpu), &case.run(&mut Reference), what);
}

fn heads((heads, kv_heads, head_dim): (usize, usize, usize)) -> HeadShape {
    HeadShape {
        heads,
        kv_heads,
        head_dim,
    }
}

fn check_rows(gpu: &mut Cuda, rows: usize, width: usize, weights: usize, op: RowOp) {
    let case = RowWise::random(rows, width, weights, op);
    check(gpu, &case, &format!("{op:?} ({rows}, {width})"));
}

#[test]
fn row_operations_equal_the_reference() {
    on_gpu("row_operations_equal_the_reference", |gpu| {
        for width in [1, 31, 32, 33, 257] {
            for rows in [1, 3] {
                check_rows(gpu, rows, width, width, RowOp::RmsNorm);
                check_rows(gpu, rows, width, 0, RowOp::Add);
                check_rows(gpu, rows, 2 * width, 0, RowOp::SiluMul);
            }
        }
    });
}

#[test]
fn head_operations_equal_the_reference() {
    on_gpu("head_operations_equal_the_reference", |gpu| {
        for shape in [(4, 2, 16), (3, 3, 6), (8, 1, 40), (2, 1, 130)].map(heads) {
            let (width, dim) = (shape.qkv_width(), shape.head_dim);
            for rows in [1, 9] {
                check_rows(gpu, rows, width, dim, RowOp::QkNorm(shape));
                for style in [RopeStyle::Half, RopeStyle::Interleaved] {
                    check_rows(gpu, rows, width, 7 * dim / 2, RowOp::Rope(shape, style));
                }
            }
        }
    });
}

#[test]
fn embedding_reads_every_type_exactly() {
    on_gpu("embedding_reads_every_type_exactly", |gpu| {
        let mut random = Random(5);
        for dtype in DTYPES {
            let table = random.tensor(dtype, 37, 64, 3.0);
            let case = Embed(table, vec![0, 36, 16, 15, 36, 7]);
            check(gpu, &case, &format!("{dtype:?}"));
        }
    });
}

#[test]
fn matmul_equals_the_reference_for_every_type_and_shape() {
    on_gpu(
        "matmul_equals_the_reference_for_every_type_and_shape",
        |gpu| {
            let mut random = Random(1);
            for dtype in DTYPES {
                let quantised = dtype.bytes(QUANT_BLOCK) < 2 * QUANT_BLOCK;
                for (outputs, cols) in [(1, 1usize), (31, 33), (32, 32), (33, 257)] {
                    let unit = if quantised { QUANT_BLOCK } else { 1 };
                    let cols = cols.next_multiple_of(unit);
                    for rows in [1, 5, 33] {
                        let case = Matmul {
                            parts: vec![random.tensor(dtype, outputs, cols, 1.0)],
                            rows,
                            x: random.floats(rows * cols),
                        };
                        let what = format!("{dtype:?} ({outputs}, {cols}) times {rows} rows");
                        check(gpu, &case, &what);
                    }
                }
            }
            let types = [(DType::Q4_1, 17), (DType::F16, 1), (DType::Q8_0, 48)];
            let case = Matmul {
                parts: types
                    .map(|(t, rows)| random.tensor(t, rows, 64, 1.0))
                    .into(),
                rows: 5,
                x: random.floats(5 * 64),
            };
            check(gpu, &case, "three parts");
        },
    );
}

#[test]
fn attention_equals_the_reference_for_any_heads_and_chunks() {
    on_gpu(
        "attention_equals_the_reference_for_any_heads_and_chunks",
        |gpu| {
            for (seed, shape) in [(9, 3, 64), (2, 1, 6), (3, 1, 130)].into_iter().enumerate() {
                for chunks in [
                    vec![[1, 0], [1, 1], [1, 1]],
                    vec![[15, 2], [1, 31], [1, 1]],
                    vec![[130, 5], [1, 12], [1, 1]],
                ] {
                    // The widest shape and the longest chunk together would only take longer.
                    if shape.2 == 64 && chunks[0][0] == 130 {
                        continue;
                    }
                    let what = format!("{shape:?} in {chunks:?}");
                    let case = Attention {
                        shape: heads(shape),
                        chunks,
                        seed: seed as u64,
                    };
                    check(gpu, &case, &what);
                }
            }
            check(gpu, &Stale(heads((6, 2, 16))), "after NaN");
        },
    );
}

#[test]
fn an_empty_step_is_nothing_to_do() {
    on_gpu("an_empty_step_is_nothing_to_do", |gpu| {
        let shape = heads((2, 1, 4));
        let batch = StepBatch {
            tokens: &[],
            positions: &[],
            sequences: &[],
        };
        let step = gpu.upload_step(&batch).unwrap();
        let mut pool = gpu
            .new_kv_pool(KvShape {
                layers: 1,
                blocks: 1,
                heads: shape,
            })
            .unwrap();
        let weight = gpu.upload_matrix(&[Random(1).tensor(DType::F32, 4, 4, 1.0).view()]);
        let weight = weight.unwrap();
        let mut x = gpu.new_buffer(1, shape.qkv_width()).unwrap();
        let mut y = gpu.new_buffer(1, shape.qkv_width()).unwrap();
        gpu.embed(&weight, &step, &mut x);
        gpu.add(0, &mut x, &y);
        gpu.matmul(0, &weight, &x, &mut y);
        gpu.kv_write(&step, 0, &x, &mut pool);
        gpu.attention(&step, 0, &x, &pool, &mut y);
        gpu.gather_wanted(&step, 0..0, &x, &mut y);
        assert!(read(gpu, 0, &y).is_empty());
    });
}

#[test]
fn wanted_rows_are_gathered_in_order() {
    struct Gather;
    impl Case for Gather {
        fn run<B: Backend>(&self, b: &mut B) -> Vec<f32> {
            let x = crate::backend::cpu::tests::buffer(b, 6, &Random(3).floats(6 * 33));
            let sequence = |rows: Range<usize>, wants_logits| StepSequence {
                rows,
                block_table: &[],
                wants_logits,
            };
            let batch = StepBatch {
                tokens: &[0; 6],
                positions: &[0; 6],
                sequences: &[
                    sequence(0..1, true),
                    sequence(1..3, false),
                    sequence(3..5, true),
                    sequence(5..6, true),
                ],
            };
            let step = b.upload_step(&batch).unwrap();
            let mut out = b.new_buffer(2, 33).unwrap();
            b.gather_wanted(&step, 1..3, &x, &mut out);
            read(b, 2, &out)
        }
    }
    on_gpu("wanted_rows_are_gathered_in_order", |gpu| {
        check(gpu, &Gather, "the last two of three");
    });
}

#[test]
fn what_the_gpu_cannot_hold_is_an_error_with_its_size() {
    on_gpu(
        "what_the_gpu_cannot_hold_is_an_error_with_its_size",
        |gpu| {
            let error = gpu.new_buffer(1 << 22, 1 << 20).unwrap_err().to_string();
            let expect = "the GPU has no room for 16777216 MiB more: CUDA_ERROR_OUT_OF_MEMORY";
            assert_eq!(error, expect);
            assert!(gpu.new_buffer(1, 1).is_ok());
        },
    );
}
