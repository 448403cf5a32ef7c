//! A mixture's operations: softmax by lanes, experts chosen in one pass, and all experts' products in one loop.

use super::super::host::HostBuffer;
use super::super::mixture::{HostRouting, renormalise};
use super::super::numeric::{self, LANES};
use super::lanes::{Isa, Kernel, Lanes};
use super::matmul::{Group, Scratch, matmul};
use super::matrix::Matrix;
use super::pool::Pool;
use super::rows::each_row;

/// See `Backend::route`.
pub(super) fn route(
    (pool, isa): (&mut Pool, Isa),
    (rows, layer): (usize, usize),
    logits: &mut HostBuffer,
    routing: &mut HostRouting,
) {
    let width = logits.width;
    each_row(pool, rows, width, logits, &|_, x| isa.run(Softmax { x }));
    for row in 0..rows {
        let at = routing.choices(row);
        let experts = &mut routing.experts[at.clone()];
        let weights = &mut routing.weights[at];
        choose(logits.row(row), experts, weights);
        if routing.shape.renormalise {
            renormalise(weights);
        }
    }
    routing.group(rows, layer);
}

/// As many of the greatest of `p` as there is room for, with their places: in falling order, equal ones by rising place.
fn choose(p: &[f32], places: &mut [u32], values: &mut [f32]) {
    let mut held = 0;
    for (place, &value) in p.iter().enumerate() {
        let full = held == places.len();
        if full && !values.last().is_some_and(|last| value > *last) {
            continue;
        }
        // Where nothing held is less, the end; a full list loses its last.
        let at = values[..held]
            .iter()
            .position(|held| value > *held)
            .unwrap_or(held);
        held = (held + 1).min(places.len());
        places[at..held].rotate_right(1);
        values[at..held].rotate_right(1);
        (places[at], values[at]) = (place as u32, value);
    }
}

/// x (n) = softmax(x).
struct Softmax<'a> {
    x: &'a mut [f32],
}

impl Kernel for Softmax<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let highest = self
            .x
            .iter()
            .fold(f32::NEG_INFINITY, |m, &x| numeric::greater(x, m));
        let splat = lanes.splat(highest);
        let mut sum = lanes.zero();
        let (vectors, tail) = self.x.as_chunks_mut::<LANES>();
        for x in &mut *vectors {
            let e = lanes.exp(lanes.sub(lanes.load(x), splat));
            sum = lanes.add(sum, e);
            lanes.store(e, x);
        }
        let mut sums = lanes.to_array(sum);
        for (x, sum) in tail.iter_mut().zip(&mut sums) {
            *x = numeric::exp(*x - highest);
            *sum += *x;
        }
        let sum = numeric::fold_lanes(sums);
        let splat = lanes.splat(sum);
        for x in vectors {
            lanes.store(lanes.div(lanes.load(x), splat), x);
        }
        tail.iter_mut().for_each(|x| *x /= sum);
    }
}

/// See `Backend::scatter`.
pub(super) fn scatter(
    pool: &mut Pool,
    routing: &HostRouting,
    x: &HostBuffer,
    out: &mut HostBuffer,
) {
    let width = out.width;
    each_row(pool, routing.slots_used(), width, out, &|slot, out| {
        out.copy_from_slice(x.row(routing.sources[slot] as usize));
    });
}

/// See `Backend::expert_matmul`.
pub(super) fn expert_matmul(
    threads: (&mut Pool, Isa, &mut Scratch),
    routing: &HostRouting,
    experts: &[Matrix],
    x: &HostBuffer,
    out: &mut HostBuffer,
) {
    let groups: Vec<Group<'_>> = experts
        .iter()
        .enumerate()
        .map(|(expert, weight)| Group {
            weight,
            rows: routing.slots_of(expert),
        })
        .collect();
    matmul(threads, &groups, x, out);
}

/// See `Backend::combine`.
pub(super) fn combine(
    (pool, isa): (&mut Pool, Isa),
    routing: &HostRouting,
    x: &HostBuffer,
    out: &mut HostBuffer,
) {
    let width = out.width;
    each_row(pool, routing.rows, width, out, &|row, out| {
        isa.run(Combine {
            routing,
            x,
            row,
            out,
        });
    });
}

/// The weighted sum of one row's slots.
struct Combine<'a> {
    routing: &'a HostRouting,
    x: &'a HostBuffer,
    row: usize,
    out: &'a mut [f32],
}

impl Kernel for Combine<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        self.out.fill(0.0);
        let (outs, out_tail) = self.out.as_chunks_mut::<LANES>();
        for choice in self.routing.choices(self.row) {
            let weight = self.routing.weights[choice];
            let splat = lanes.splat(weight);
            let from = self.x.row(self.routing.slots[choice] as usize);
            let (vectors, tail) = from.as_chunks::<LANES>();
            for (out, x) in outs.iter_mut().zip(vectors) {
                let sum = lanes.fma(splat, lanes.load(x), lanes.load(out));
                lanes.store(sum, out);
            }
            for (out, &x) in out_tail.iter_mut().zip(tail) {
                *out = weight.mul_add(x, *out);
            }
        }
    }
}
