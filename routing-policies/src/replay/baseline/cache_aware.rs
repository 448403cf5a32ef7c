//! SGLang's placement: follow the longest match unless the counts of requests are out of balance.

use super::plain::fewest_in_flight;
use crate::placement::Lru;
use crate::replay::{Chance, Placement, Request, Setup, Sight};

/// Where in-flight counts differ by more than `absolute` and by more than `relative` times, the fewest in flight; else the longest
/// match where it covers more than `threshold` of the prompt; else the fewest in flight.
#[derive(Debug)]
pub struct CacheAware {
    threshold: f64,
    absolute: u32,
    relative: f64,
    believed: Vec<Lru>,
    chance: Chance,
}

impl CacheAware {
    /// With its three thresholds. It knows no cache size: what it has sent to a replica it believes to be there for ever, as its
    /// trees hold millions of characters for each.
    #[must_use]
    pub fn new(setup: &Setup, threshold: f64, absolute: u32, relative: f64, seed: u64) -> Self {
        Self {
            threshold,
            absolute,
            relative,
            believed: vec![Lru::new(u64::MAX); setup.replicas],
            chance: Chance::new(seed),
        }
    }
}

impl Placement for CacheAware {
    fn pick(&mut self, _: usize, request: &Request, sight: Sight<'_>) -> usize {
        let counts = sight.in_flight();
        let most = counts.iter().copied().max().unwrap_or(0);
        let least = counts.iter().copied().min().unwrap_or(0);
        let apart = most - least > self.absolute;
        if apart && f64::from(most) > self.relative * f64::from(least) {
            return fewest_in_flight(&mut self.chance, sight);
        }
        let held: Vec<u64> = self
            .believed
            .iter()
            .map(|cache| cache.held_tokens(&request.blocks))
            .collect();
        let all: u64 = request.blocks.iter().map(|b| u64::from(b.tokens)).sum();
        let best = held.iter().copied().max().unwrap_or(0);
        if best as f64 > self.threshold * all as f64 {
            return self
                .chance
                .least(held.iter().map(|&tokens| -(tokens as f64)));
        }
        fewest_in_flight(&mut self.chance, sight)
    }

    fn routed(&mut self, _: usize, request: &Request, replica: usize) {
        self.believed[replica].insert(&request.blocks, |_, _| ());
    }
}
