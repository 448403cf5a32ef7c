//! Placements of other routers, and the plain ones, to measure against. Each is written from its maker's description; what it reads
//! from engines is given to it exactly, so none loses by stale telemetry.

mod cache_aware;
mod hashed;
mod plain;
mod scored;
mod sketch;

pub use cache_aware::CacheAware;
pub use hashed::{BoundedHash, SessionHash};
pub use plain::{LeastLoad, Random, RoundRobin, SessionPin};
pub use scored::{DynamoCost, LlmdScore};
pub use sketch::HotSketch;

use super::{Placement, Setup};

/// The built-in baselines' names, in the order in which tables show them.
pub const NAMES: [&str; 11] = [
    "random",
    "round_robin",
    "least_load",
    "session_hash",
    "session_pin",
    "bounded_hash",
    "cache_aware_0.5/32/1.1",
    "cache_aware_0.3/64/1.5",
    "dynamo_cost",
    "llmd_cost",
    "gateway_hot_a2",
];

/// The baseline called `name`, cold; `None` for an unknown name. `seed` is for those that use chance.
#[must_use]
pub fn named(name: &str, setup: &Setup, seed: u64) -> Option<Box<dyn Placement>> {
    Some(match name {
        "random" => Box::new(Random::new(seed)),
        "round_robin" => Box::new(RoundRobin::default()),
        "least_load" => Box::new(LeastLoad::new(seed)),
        "session_hash" => Box::new(SessionHash),
        "session_pin" => Box::new(SessionPin::new(seed)),
        "bounded_hash" => Box::new(BoundedHash::new(seed)),
        "cache_aware_0.5/32/1.1" => Box::new(CacheAware::new(setup, 0.5, 32, 1.1, seed)),
        "cache_aware_0.3/64/1.5" => Box::new(CacheAware::new(setup, 0.3, 64, 1.5, seed)),
        "dynamo_cost" => Box::new(DynamoCost::new(seed)),
        "llmd_cost" => Box::new(LlmdScore::new(seed)),
        "gateway_hot_a2" => Box::new(HotSketch::new(setup, seed)),
        _ => return None,
    })
}
