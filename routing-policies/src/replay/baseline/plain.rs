//! Placements that know nothing of prefixes.

use std::collections::HashMap;

use crate::replay::{Chance, Placement, Request, Sight};

/// Any replica.
#[derive(Debug)]
pub struct Random(Chance);

/// One after the other.
#[derive(Debug, Default)]
pub struct RoundRobin(usize);

/// The fewest requests in flight.
#[derive(Debug)]
pub struct LeastLoad(Chance);

/// A session's first turn goes to the fewest requests in flight, and the rest follow it.
#[derive(Debug)]
pub struct SessionPin {
    chance: Chance,
    pins: HashMap<u64, usize>,
}

impl Random {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Chance::new(seed))
    }
}

impl LeastLoad {
    /// From a seed, which breaks ties.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Chance::new(seed))
    }
}

impl SessionPin {
    /// From a seed, which breaks ties.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            chance: Chance::new(seed),
            pins: HashMap::new(),
        }
    }
}

impl Placement for Random {
    fn pick(&mut self, _: usize, _: &Request, sight: Sight<'_>) -> usize {
        self.0.below(sight.replicas())
    }
}

impl Placement for RoundRobin {
    fn pick(&mut self, _: usize, _: &Request, sight: Sight<'_>) -> usize {
        let replica = self.0 % sight.replicas();
        self.0 += 1;
        replica
    }
}

impl Placement for LeastLoad {
    fn pick(&mut self, _: usize, _: &Request, sight: Sight<'_>) -> usize {
        fewest_in_flight(&mut self.0, sight)
    }
}

impl Placement for SessionPin {
    fn pick(&mut self, _: usize, request: &Request, sight: Sight<'_>) -> usize {
        let chance = &mut self.chance;
        *self
            .pins
            .entry(request.session)
            .or_insert_with(|| fewest_in_flight(chance, sight))
    }
}

pub(super) fn fewest_in_flight(chance: &mut Chance, sight: Sight<'_>) -> usize {
    chance.least(sight.in_flight().iter().map(|&count| f64::from(count)))
}
