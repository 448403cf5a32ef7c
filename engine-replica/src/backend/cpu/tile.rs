//! The one inner loop: R activation rows times S strips of weights, all sums in registers.
#![expect(
    clippy::needless_range_loop,
    reason = "loops over register arrays have constant bounds, and plain indices unroll best"
)]

use super::lanes::Lanes;
use super::strips::Unit;

/// k that are unrolled together: the nibbles of one word.
const UNROLL: usize = 8;

/// Returns `acc` after acc[r][s] = fma(weight of strip s at k, x[k][r], acc[r][s]) for each k in ascending order.
///
/// Every strip has `x.len() / U::K` units. Loops over R and S have constant bounds and unroll into registers.
#[inline(always)]
pub(super) fn accumulate<L: Lanes, U: Unit, const R: usize, const S: usize>(
    lanes: L,
    strips: [&[U]; S],
    x: &[[f32; R]],
    mut acc: [[L::F; S]; R],
) -> [[L::F; S]; R] {
    let units = x.len() / U::K;
    let mut cut = strips;
    for s in 0..S {
        cut[s] = &strips[s][..units];
    }
    let step = if U::K < UNROLL { U::K } else { UNROLL };
    for (u, x) in x.chunks_exact(U::K).enumerate() {
        let mut open = [cut[0][u].open(lanes); S];
        for s in 1..S {
            open[s] = cut[s][u].open(lanes);
        }
        let mut base = 0;
        while base < U::K {
            for k in base..base + step {
                // All S weights first: then each activation is spread once and S sums take it at once, which needs
                // R·S + S + 1 registers.
                let mut weights = [cut[0][u].at(lanes, &mut open[0], k); S];
                for s in 1..S {
                    weights[s] = cut[s][u].at(lanes, &mut open[s], k);
                }
                for r in 0..R {
                    let activation = lanes.splat(x[k][r]);
                    for s in 0..S {
                        acc[r][s] = lanes.fma(weights[s], activation, acc[r][s]);
                    }
                }
            }
            base += step;
        }
    }
    acc
}
