//! The operations that go row by row: norms, activation, sums.
#![expect(
    unsafe_code,
    reason = "threads write disjoint rows; A4 allows it in backend/cpu"
)]

use std::ops::Range;

use super::super::host::HostBuffer;
use super::super::numeric::{self, LANES};
use super::lanes::{Kernel, Lanes};
use super::pool::Pool;
use super::shared::SharedRows;

/// Floats below which waking other threads costs more than it saves (about 2 µs of work).
const TASK_FLOATS_MIN: usize = 16 * 1024;

/// Calls `body` with disjoint ranges that cover `0..rows`; `width` floats are touched a row.
fn split_rows(pool: &mut Pool, rows: usize, width: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
    let each = TASK_FLOATS_MIN.div_ceil(width.max(1));
    pool.run(rows.div_ceil(each), &|task, _| {
        body(task * each..((task + 1) * each).min(rows))
    });
}

/// x (n) = x · (1 / sqrt(mean(x²) + eps)) · weight (n), in place; see `Backend::rms_norm`.
pub(super) struct Normalise<'a> {
    pub(super) x: &'a mut [f32],
    pub(super) weight: &'a [f32],
    pub(super) eps: f32,
}

impl Kernel for Normalise<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let mut sum = lanes.zero();
        let (vectors, tail) = self.x.as_chunks::<LANES>();
        for x in vectors {
            let x = lanes.load(x);
            sum = lanes.fma(x, x, sum);
        }
        // Zeros beyond the end leave their lanes as they are.
        let x = lanes.load(&padded(tail));
        sum = lanes.fma(x, x, sum);
        let mean = numeric::fold_lanes(lanes.to_array(sum)) / self.x.len() as f32;
        let scale = 1.0 / (mean + self.eps).sqrt();
        let splat = lanes.splat(scale);
        let (vectors, tail) = self.x.as_chunks_mut::<LANES>();
        let (weights, weights_tail) = self.weight.as_chunks::<LANES>();
        for (x, weight) in vectors.iter_mut().zip(weights) {
            lanes.store(
                lanes.mul(lanes.mul(lanes.load(x), splat), lanes.load(weight)),
                x,
            );
        }
        for (x, weight) in tail.iter_mut().zip(weights_tail) {
            *x = *x * scale * weight;
        }
    }
}

/// out (n) = silu(gate (n)) · up (n).
pub(super) struct SiluMul<'a> {
    pub(super) gate: &'a [f32],
    pub(super) up: &'a [f32],
    pub(super) out: &'a mut [f32],
}

impl Kernel for SiluMul<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let (gates, gate_tail) = self.gate.as_chunks::<LANES>();
        let (ups, up_tail) = self.up.as_chunks::<LANES>();
        let (outs, out_tail) = self.out.as_chunks_mut::<LANES>();
        let (zero, one) = (lanes.zero(), lanes.splat(1.0));
        for ((gate, up), out) in gates.iter().zip(ups).zip(outs) {
            let gate = lanes.load(gate);
            // 0 − gate differs from −gate in the sign of zero alone, which exp does not see.
            let e = lanes.exp(lanes.sub(zero, gate));
            let silu = lanes.div(gate, lanes.add(one, e));
            lanes.store(lanes.mul(silu, lanes.load(up)), out);
        }
        for ((&gate, &up), out) in gate_tail.iter().zip(up_tail).zip(out_tail) {
            *out = numeric::silu(gate) * up;
        }
    }
}

/// Up to sixteen floats and zeros.
#[inline(always)]
fn padded(tail: &[f32]) -> [f32; LANES] {
    let mut array = [0.0; LANES];
    array[..tail.len()].copy_from_slice(tail);
    array
}

/// Calls `body` with the first `cols` columns of each row, in parallel.
pub(super) fn each_row(
    pool: &mut Pool,
    rows: usize,
    cols: usize,
    buffer: &mut HostBuffer,
    body: &(dyn Fn(usize, &mut [f32]) + Sync),
) {
    let shared = SharedRows::new(buffer);
    split_rows(pool, rows, cols, &|range| {
        for row in range {
            // SAFETY: tasks have disjoint rows.
            body(row, unsafe { shared.part(row, 0..cols) });
        }
    });
}
