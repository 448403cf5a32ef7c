//! A recorded trace replayed through replicas that are modelled, to compare placements before any traffic meets them.
//!
//! The model. A replica keeps prompt blocks in an exact LRU cache and prefills one request after another: a first token comes after
//! the queue, 15 ms, and the uncached tokens at the replica's rate; then the request holds a slot for 20 ms per answer token. The
//! rate is such that the trace *without any hit* would load the replicas to `offered_load`, so every number of replicas is loaded
//! alike, and a placement wins only by hits and by balance. Arrivals do not wait for answers. Only prompts are cached.
//!
//! Pure: requests come as a slice, time is the trace's, chance is a seed.

pub mod baseline;
mod chance;
mod cluster;
mod compare;
mod moves;
mod outcome;
mod ruled;
mod trace;

pub use chance::{Chance, rendezvous};
pub use cluster::{Cluster, Event, OVERHEAD_S, SECONDS_PER_OUTPUT_TOKEN, Served, Sight};
pub use compare::{AGAINST, Row, Summary, compare, grid, summaries};
pub use moves::{Moves, moves};
pub use outcome::{Outcome, pooled_hit};
pub use ruled::Ruled;
pub use trace::{Request, arrivals, halves};

/// What is replayed on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// Number of replicas, at least 1.
    pub replicas: usize,
    /// Cache of each replica, in tokens.
    pub cache_tokens: u64,
    /// Tokens in a block of the trace, at least 1.
    pub block_tokens: u32,
    /// Share of the replicas' prefill capacity that the trace would take without any hit, over 0.
    pub offered_load: f64,
}

impl Setup {
    /// Cache of each replica, in tokens of whole blocks, at least one block.
    #[must_use]
    pub fn cache_capacity(&self) -> u64 {
        let block = u64::from(self.block_tokens);
        (self.cache_tokens / block).max(1) * block
    }

    /// Prefill rate of one replica under which `requests` make the offered load, in tokens a second.
    #[must_use]
    pub fn tokens_per_s(&self, requests: &[Request]) -> f64 {
        let tokens: f64 = requests.iter().map(|r| f64::from(r.prompt_tokens)).sum();
        let span_s = match requests {
            [first, .., last] => last.at_s - first.at_s,
            _ => 1.0,
        };
        tokens / (span_s * self.replicas as f64 * self.offered_load)
    }
}

/// A way to choose the replica of each request.
pub trait Placement {
    /// The replica for the trace's request number `place`; below `sight.replicas()`.
    fn pick(&mut self, place: usize, request: &Request, sight: Sight<'_>) -> usize;

    /// The request went to `replica`, and its reply will say that `cached_tokens` of the prompt were cached.
    fn routed(&mut self, _place: usize, _request: &Request, _replica: usize) {}

    /// The first token of a request came back through the gateway; `served` is what its reply reports and its time shows.
    fn first_token(&mut self, _event: Event, _request: &Request, _served: Served) {}
}

/// Replays `requests`, ordered by arrival, on cold replicas.
pub fn run(setup: &Setup, requests: &[Request], placement: &mut dyn Placement) -> Outcome {
    let mut cluster = Cluster::new(
        setup.replicas,
        setup.cache_capacity(),
        setup.block_tokens,
        setup.tokens_per_s(requests),
    );
    let mut served: Vec<Served> = Vec::with_capacity(requests.len());
    for (place, request) in requests.iter().enumerate() {
        cluster.advance(request.at_s, |event| {
            placement.first_token(event, &requests[event.request], served[event.request]);
        });
        let replica = placement.pick(place, request, cluster.sight());
        served.push(cluster.serve(replica, place, request));
        placement.routed(place, request, replica);
    }
    Outcome::of(setup, requests, &served, cluster.prefill_tokens())
}

#[cfg(test)]
mod tests;
