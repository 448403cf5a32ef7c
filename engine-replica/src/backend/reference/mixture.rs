//! A mixture's operations as plain code.

use super::super::host::HostBuffer;
use super::super::mixture::{HostRouting, renormalise};
use super::super::numeric::{self, LANES};
use super::{Matrix, attention};

/// See `Backend::route`.
pub(super) fn route(rows: usize, layer: usize, logits: &mut HostBuffer, routing: &mut HostRouting) {
    for row in 0..rows {
        let p = logits.row_mut(row);
        softmax(p);
        let at = routing.choices(row);
        let chosen = likeliest(p, at.len());
        for (choice, expert) in at.clone().zip(chosen) {
            routing.experts[choice] = expert as u32;
            routing.weights[choice] = p[expert];
        }
        if routing.shape.renormalise {
            renormalise(&mut routing.weights[at]);
        }
    }
    routing.group(rows, layer);
}

fn softmax(x: &mut [f32]) {
    let highest = x
        .iter()
        .fold(f32::NEG_INFINITY, |m, &x| numeric::greater(x, m));
    let mut lanes = [0.0; LANES];
    for (i, x) in x.iter_mut().enumerate() {
        *x = numeric::exp(*x - highest);
        lanes[i % LANES] += *x;
    }
    let sum = numeric::fold_lanes(lanes);
    x.iter_mut().for_each(|x| *x /= sum);
}

/// The `count` greatest of `p`, one after the other: each time the first that none of the rest exceeds.
fn likeliest(p: &[f32], count: usize) -> Vec<usize> {
    let mut left: Vec<usize> = (0..p.len()).collect();
    (0..count)
        .map(|_| {
            let best = (1..left.len()).fold(0, |best, at| {
                if p[left[at]] > p[left[best]] {
                    at
                } else {
                    best
                }
            });
            left.remove(best)
        })
        .collect()
}

/// See `Backend::scatter`.
pub(super) fn scatter(routing: &HostRouting, x: &HostBuffer, out: &mut HostBuffer) {
    for slot in 0..routing.slots_used() {
        let row = routing.sources[slot] as usize;
        out.row_mut(slot).copy_from_slice(x.row(row));
    }
}

/// See `Backend::expert_matmul`.
pub(super) fn matmul(
    routing: &HostRouting,
    experts: &[Matrix],
    x: &HostBuffer,
    out: &mut HostBuffer,
) {
    for (expert, weight) in experts.iter().enumerate() {
        for slot in routing.slots_of(expert) {
            let weights = weight.values.chunks_exact(weight.cols);
            for (o, w) in out.row_mut(slot).iter_mut().zip(weights) {
                *o = attention::dot(w, x.row(slot));
            }
        }
    }
}

/// See `Backend::combine`.
pub(super) fn combine(routing: &HostRouting, x: &HostBuffer, out: &mut HostBuffer) {
    for row in 0..routing.rows {
        let out = out.row_mut(row);
        out.fill(0.0);
        for choice in routing.choices(row) {
            let weight = routing.weights[choice];
            let from = x.row(routing.slots[choice] as usize);
            for (o, &v) in out.iter_mut().zip(from) {
                *o = weight.mul_add(v, *o);
            }
        }
    }
}
