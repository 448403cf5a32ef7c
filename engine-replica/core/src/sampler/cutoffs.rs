//! Cutting the tail of the distribution without sorting all of it. Candidates come and leave in the order of their ids.

use super::{Candidate, total};

/// Candidates that are sorted at first in the search for the nucleus; it is rarely larger.
const NUCLEUS_GUESS: usize = 64;

/// Keeps the `k` likeliest; all when `k` is 0.
pub(super) fn top_k(candidates: &mut Vec<Candidate>, k: usize) {
    if k == 0 || k >= candidates.len() {
        return;
    }
    candidates.select_nth_unstable_by(k - 1, Candidate::order);
    candidates.truncate(k);
    by_id(candidates);
}

/// Keeps the fewest of the likeliest whose weights add up to at least the share `p` of all, and at least one.
pub(super) fn top_p(candidates: &mut Vec<Candidate>, p: f32) {
    if p >= 1.0 || candidates.is_empty() {
        return;
    }
    let enough = f64::from(p) * total(candidates);
    let (mut sorted, mut reached, mut kept) = (0, 0.0, 0);
    'search: while kept < candidates.len() {
        // `sorted` likeliest are in order; put as many again and more in order behind them.
        let rest = &mut candidates[sorted..];
        let more = (sorted * 3).max(NUCLEUS_GUESS).min(rest.len());
        if more < rest.len() {
            rest.select_nth_unstable_by(more - 1, Candidate::order);
        }
        rest[..more].sort_unstable_by(Candidate::order);
        sorted += more;
        for candidate in &candidates[kept..sorted] {
            reached += f64::from(candidate.weight);
            kept += 1;
            if reached >= enough {
                break 'search;
            }
        }
    }
    candidates.truncate(kept);
    by_id(candidates);
}

fn by_id(candidates: &mut [Candidate]) {
    candidates.sort_unstable_by_key(|candidate| candidate.id);
}
