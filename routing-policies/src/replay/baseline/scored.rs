//! Placements by a score over exact engine telemetry.

use crate::replay::{Chance, Placement, Request, Sight};

/// Dynamo's cost at its default weight and temperature 0: tokens to prefill, queue included, plus tokens of blocks in use.
#[derive(Debug)]
pub struct DynamoCost(Chance);

/// llm-d's weighted scorers: 3 × share of the prompt cached + 2 × (1 − requests, scaled) + 2 × (1 − tokens in use, scaled).
#[derive(Debug)]
pub struct LlmdScore(Chance);

impl DynamoCost {
    /// From a seed, which breaks ties.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Chance::new(seed))
    }
}

impl LlmdScore {
    /// From a seed, which breaks ties.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Chance::new(seed))
    }
}

impl Placement for DynamoCost {
    fn pick(&mut self, _: usize, request: &Request, sight: Sight<'_>) -> usize {
        let all: u64 = request.blocks.iter().map(|b| u64::from(b.tokens)).sum();
        let costs: Vec<f64> = (0..sight.replicas())
            .map(|replica| {
                let missing = all - sight.held_tokens(replica, &request.blocks);
                let active = sight.active_tokens()[replica] + all;
                sight.queued_tokens(replica) + missing as f64 + active as f64
            })
            .collect();
        self.0.least(costs.iter().copied())
    }
}

impl Placement for LlmdScore {
    fn pick(&mut self, _: usize, request: &Request, sight: Sight<'_>) -> usize {
        let counts: Vec<f64> = sight.in_flight().iter().map(|&n| f64::from(n)).collect();
        let active: Vec<f64> = sight.active_tokens().iter().map(|&n| n as f64).collect();
        let all: u64 = request.blocks.iter().map(|b| u64::from(b.tokens)).sum();
        let (counts, active) = (spare(&counts), spare(&active));
        let costs: Vec<f64> = (0..sight.replicas())
            .map(|replica| {
                let held = sight.held_tokens(replica, &request.blocks);
                let share = held as f64 / all.max(1) as f64;
                -(3.0 * share + 2.0 * counts[replica] + 2.0 * active[replica])
            })
            .collect();
        self.0.least(costs.iter().copied())
    }
}

/// 1 at the least load, 0 at the most, between them in proportion; 1 for all where all are equal.
fn spare(loads: &[f64]) -> Vec<f64> {
    let least = loads.iter().copied().fold(f64::INFINITY, f64::min);
    let most = loads.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let scale = |load: f64| {
        if most > least {
            (most - load) / (most - least)
        } else {
            1.0
        }
    };
    loads.iter().map(|&load| scale(load)).collect()
}
