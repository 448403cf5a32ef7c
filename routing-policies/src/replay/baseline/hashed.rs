//! Placements by hash.

use std::cmp::Reverse;

use super::plain::fewest_in_flight;
use crate::replay::chance::weight;
use crate::replay::{Chance, Placement, Request, Sight, rendezvous};

/// Rendezvous hash of the session.
#[derive(Debug)]
pub struct SessionHash;

/// Rendezvous hash of the first two blocks with bounded load: the first replica in the key's order that stays within 1.25 times the
/// mean of requests in flight.
#[derive(Debug)]
pub struct BoundedHash(Chance);

const BOUND: f64 = 1.25;
const PREFIX_BLOCKS: usize = 2;

impl BoundedHash {
    /// From a seed, which breaks ties where every replica is over the bound.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Chance::new(seed))
    }
}

impl Placement for SessionHash {
    fn pick(&mut self, _: usize, request: &Request, sight: Sight<'_>) -> usize {
        rendezvous(request.session, sight.replicas())
    }
}

impl Placement for BoundedHash {
    fn pick(&mut self, _: usize, request: &Request, sight: Sight<'_>) -> usize {
        let in_flight = sight.in_flight();
        let all: u32 = in_flight.iter().sum();
        let limit = (BOUND * f64::from(all + 1) / in_flight.len() as f64).max(1.0);
        let root = request.blocks.iter().take(PREFIX_BLOCKS).next_back();
        let key = root.map_or(request.session, |block| block.key);
        let mut order: Vec<usize> = (0..in_flight.len()).collect();
        order.sort_by_key(|&replica| Reverse(weight(key, replica)));
        let within = |replica: &usize| f64::from(in_flight[*replica] + 1) <= limit;
        order
            .into_iter()
            .find(within)
            .unwrap_or_else(|| fewest_in_flight(&mut self.0, sight))
    }
}
