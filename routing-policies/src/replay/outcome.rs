//! What a replay came to.

use super::cluster::Served;
use super::{Request, Setup};
use crate::placement::Lru;

/// The measures of one replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Share of prompt tokens served from cache.
    pub hit: f64,
    /// `hit` as a share of what one cache as large as all replicas' together would have given.
    pub of_pool: f64,
    /// Uncached tokens of the replica that had most of them, over the mean.
    pub imbalance: f64,
    /// Mean time to first token, in seconds.
    pub ttft_mean_s: f64,
    /// Half of the requests had their first token within this time, in seconds.
    pub ttft_p50_s: f64,
    /// Nine of ten did.
    pub ttft_p90_s: f64,
    /// 99 of 100 did.
    pub ttft_p99_s: f64,
}

impl Outcome {
    pub(super) fn of(
        setup: &Setup,
        requests: &[Request],
        served: &[Served],
        prefill_tokens: &[u64],
    ) -> Self {
        let tokens: f64 = requests.iter().map(|r| f64::from(r.prompt_tokens)).sum();
        let cached: f64 = served.iter().map(|s| f64::from(s.cached_tokens)).sum();
        let hit = share(cached, tokens);
        let mut ttft: Vec<f64> = served.iter().map(|s| s.ttft_s).collect();
        ttft.sort_by(f64::total_cmp);
        let most = prefill_tokens.iter().copied().max().unwrap_or(0) as f64;
        let mean = prefill_tokens.iter().sum::<u64>() as f64 / prefill_tokens.len().max(1) as f64;
        Self {
            hit,
            of_pool: share(hit, pooled_hit(setup, requests)),
            imbalance: share(most, mean),
            ttft_mean_s: share(ttft.iter().sum(), ttft.len() as f64),
            ttft_p50_s: percentile(&ttft, 50),
            ttft_p90_s: percentile(&ttft, 90),
            ttft_p99_s: percentile(&ttft, 99),
        }
    }
}

/// The share of prompt tokens that one LRU cache as large as all replicas' together would have served.
#[must_use]
pub fn pooled_hit(setup: &Setup, requests: &[Request]) -> f64 {
    let mut pool = Lru::new(setup.cache_capacity() * setup.replicas as u64);
    let (mut cached, mut tokens) = (0.0, 0.0);
    for request in requests {
        cached += (pool.held_tokens(&request.blocks) as f64).min(f64::from(request.prompt_tokens));
        tokens += f64::from(request.prompt_tokens);
        pool.insert(&request.blocks, |_, _| ());
    }
    share(cached, tokens)
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or(0.0)
}
