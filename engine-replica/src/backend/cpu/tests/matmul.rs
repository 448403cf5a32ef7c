//! `matmul` equals the reference whatever the rows, shapes and types.

use super::*;
use crate::loader::tensor::QUANT_BLOCK;

pub(in crate::backend) struct Matmul {
    pub(in crate::backend) parts: Vec<Tensor>,
    pub(in crate::backend) rows: usize,
    pub(in crate::backend) x: Vec<f32>,
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
