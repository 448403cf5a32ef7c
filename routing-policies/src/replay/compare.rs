//! Policies beside the built-in baselines, on every cell of replicas × cache sizes.

use super::{Outcome, Request, Ruled, Setup, baseline, run};
use crate::policy::Policy;

/// The baseline that summaries are held against.
pub const AGAINST: &str = "cache_aware_0.5/32/1.1";

/// What one placement came to in one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The policy's or the baseline's name.
    pub policy: String,
    /// The cell.
    pub setup: Setup,
    /// What it came to.
    pub outcome: Outcome,
}

/// What one placement came to over all cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The policy's or the baseline's name.
    pub policy: String,
    /// Mean of [`Outcome::hit`].
    pub hit: f64,
    /// Mean of [`Outcome::of_pool`].
    pub of_pool: f64,
    /// Mean of [`Outcome::imbalance`].
    pub imbalance: f64,
    /// Geometric mean of the 90th percentile of the time to first token over [`AGAINST`]'s.
    pub p90: f64,
    /// The greatest of these ratios.
    pub p90_worst: f64,
}

/// Every combination of `replicas` and `cache_tokens`.
#[must_use]
pub fn grid(
    replicas: &[usize],
    cache_tokens: &[u64],
    block_tokens: u32,
    offered_load: f64,
) -> Vec<Setup> {
    let cell = |replicas, cache_tokens| Setup {
        replicas,
        cache_tokens,
        block_tokens,
        offered_load,
    };
    let row = |&replicas: &usize| cache_tokens.iter().map(move |&cache| cell(replicas, cache));
    replicas.iter().flat_map(row).collect()
}

/// Replays `requests` in every cell under each policy and each of [`baseline::NAMES`], cold each time: cell by cell, policies first.
/// `seed` goes into the choice among equals and nothing else.
#[must_use]
pub fn compare(
    requests: &[Request],
    grid: &[Setup],
    policies: &[(String, Policy)],
    seed: u64,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for &setup in grid {
        let mut add = |policy: &str, placement: &mut dyn super::Placement| {
            rows.push(Row {
                policy: policy.to_owned(),
                setup,
                outcome: run(&setup, requests, placement),
            });
        };
        for (name, policy) in policies {
            add(
                name,
                &mut Ruled::new(&setup, policy.placement.settings, seed),
            );
        }
        for name in baseline::NAMES {
            if let Some(mut placement) = baseline::named(name, &setup, seed) {
                add(name, &mut *placement);
            }
        }
    }
    rows
}

/// One summary a placement, in the order of the first cell.
#[must_use]
pub fn summaries(rows: &[Row]) -> Vec<Summary> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.policy.as_str()) {
            names.push(&row.policy);
        }
    }
    let of = |name: &str| -> Vec<&Row> { rows.iter().filter(|row| row.policy == name).collect() };
    let against = of(AGAINST);
    names
        .into_iter()
        .map(|name| summary(name, &of(name), &against))
        .collect()
}

/// `rows` and `against` have the same cells in the same order.
fn summary(name: &str, rows: &[&Row], against: &[&Row]) -> Summary {
    let mean = |value: fn(&Outcome) -> f64| {
        let sum: f64 = rows.iter().map(|row| value(&row.outcome)).sum();
        sum / rows.len().max(1) as f64
    };
    let ratios: Vec<f64> = rows
        .iter()
        .zip(against)
        .map(|(row, base)| row.outcome.ttft_p90_s / base.outcome.ttft_p90_s)
        .collect();
    let logs: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    Summary {
        policy: name.to_owned(),
        hit: mean(|outcome| outcome.hit),
        of_pool: mean(|outcome| outcome.of_pool),
        imbalance: mean(|outcome| outcome.imbalance),
        p90: (logs / ratios.len().max(1) as f64).exp(),
        p90_worst: ratios.iter().copied().fold(0.0, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Block;
    use crate::replay::baseline::NAMES;

    /// `sessions` sessions of `turns` turns, one request a second, each turn a block of 100 tokens longer than the one before.
    fn trace(sessions: u64, turns: u64) -> Vec<Request> {
        let request = |place: u64| {
            let (session, turn) = (place % sessions, place / sessions);
            let block = |part| Block {
                key: session * 1_000 + part,
                tokens: 100,
            };
            Request {
                at_s: place as f64,
                prompt_tokens: 100 * (turn as u32 + 1),
                output_tokens: 10,
                session,
                blocks: (0..=turn).map(block).collect(),
            }
        };
        (0..sessions * turns).map(request).collect()
    }

    #[test]
    fn every_policy_and_baseline_has_a_row_in_every_cell() {
        let cells = grid(&[2, 3], &[1_000, 100_000], 100, 0.9);
        let policies = [
            ("a.toml".to_owned(), Policy::default()),
            ("b.toml".to_owned(), Policy::default()),
        ];
        let rows = compare(&trace(5, 6), &cells, &policies, 1);
        assert_eq!(rows.len(), 4 * (2 + NAMES.len()));
        let summaries = summaries(&rows);
        let names: Vec<&str> = summaries.iter().map(|s| s.policy.as_str()).collect();
        assert_eq!(names[..2], ["a.toml", "b.toml"]);
        assert_eq!(names[2..], NAMES);
        // Two equal policies come to the same, and the baseline stands at 1 against itself.
        assert_eq!(summaries[0].p90.to_bits(), summaries[1].p90.to_bits());
        let against = summaries.iter().find(|s| s.policy == AGAINST).unwrap();
        assert!((against.p90 - 1.0).abs() < 1e-9 && (against.p90_worst - 1.0).abs() < 1e-9);
        assert!(summaries[0].hit > 0.0);
    }

    #[test]
    fn nothing_comes_to_nothing() {
        assert!(compare(&[], &[], &[], 1).is_empty());
        assert!(summaries(&[]).is_empty());
    }
}
