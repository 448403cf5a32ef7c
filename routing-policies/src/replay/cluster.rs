//! The replicas of a replay: caches, prefill queues, slots. What they do is the model; what a placement sees of it is [`Sight`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::trace::Request;
use crate::placement::{Block, Lru};

/// Fixed part of a first token's time, in seconds.
pub const OVERHEAD_S: f64 = 0.015;
/// Time per answer token, in seconds.
pub const SECONDS_PER_OUTPUT_TOKEN: f64 = 0.020;

/// What happened at a replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When, in seconds.
    pub at_s: f64,
    /// Where.
    pub replica: usize,
    /// Which request of the trace, by its place.
    pub request: usize,
}

impl Eq for Event {}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at_s
            .total_cmp(&other.at_s)
            .then(self.request.cmp(&other.request))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// What serving one request came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// Prompt tokens found in the replica's cache.
    pub cached_tokens: u32,
    /// Time from arrival to first token, in seconds.
    pub ttft_s: f64,
}

/// R replicas, each with one first-in-first-out prefill server and an LRU cache of blocks.
#[derive(Debug)]
pub struct Cluster {
    now_s: f64,
    tokens_per_s: f64,
    block_tokens: u32,
    caches: Vec<Lru>,
    free_s: Vec<f64>,
    in_flight: Vec<u32>,
    active_tokens: Vec<u64>,
    prefill_tokens: Vec<u64>,
    first_tokens: BinaryHeap<Reverse<Event>>,
    ends: BinaryHeap<Reverse<(Event, u64)>>,
}

impl Cluster {
    /// Cold, idle replicas that prefill `tokens_per_s` tokens a second.
    #[must_use]
    pub fn new(replicas: usize, cache_tokens: u64, block_tokens: u32, tokens_per_s: f64) -> Self {
        Self {
            now_s: 0.0,
            tokens_per_s,
            block_tokens,
            caches: vec![Lru::new(cache_tokens); replicas],
            free_s: vec![0.0; replicas],
            in_flight: vec![0; replicas],
            active_tokens: vec![0; replicas],
            prefill_tokens: vec![0; replicas],
            first_tokens: BinaryHeap::new(),
            ends: BinaryHeap::new(),
        }
    }

    /// Moves the clock to `now_s`, which never goes back, and tells of each first token up to then, in order.
    pub fn advance(&mut self, now_s: f64, mut first_token: impl FnMut(Event)) {
        self.now_s = now_s;
        while let Some(&Reverse(event)) = self.first_tokens.peek() {
            if event.at_s > now_s {
                break;
            }
            self.first_tokens.pop();
            first_token(event);
        }
        while let Some(&Reverse((event, tokens))) = self.ends.peek() {
            if event.at_s > now_s {
                break;
            }
            self.ends.pop();
            self.in_flight[event.replica] -= 1;
            self.active_tokens[event.replica] -= tokens;
        }
    }

    /// Serves the trace's request number `place` on `replica`. Its blocks count as cached from now on: whoever arrives while it still
    /// waits would wait behind it anyway.
    pub fn serve(&mut self, replica: usize, place: usize, request: &Request) -> Served {
        let cache = &mut self.caches[replica];
        let cached_tokens = u32::try_from(cache.held_tokens(&request.blocks))
            .unwrap_or(u32::MAX)
            .min(request.prompt_tokens);
        cache.insert(&request.blocks, |_, _| ());
        let uncached = request.prompt_tokens - cached_tokens;
        let start_s = self.free_s[replica].max(self.now_s);
        let first_s = start_s + OVERHEAD_S + f64::from(uncached) / self.tokens_per_s;
        self.free_s[replica] = first_s;
        let event = Event {
            at_s: first_s,
            replica,
            request: place,
        };
        self.first_tokens.push(Reverse(event));
        let blocks =
            request.blocks.len() as u64 + u64::from(request.output_tokens / self.block_tokens);
        let tokens = blocks * u64::from(self.block_tokens);
        let end = Event {
            at_s: first_s + f64::from(request.output_tokens) * SECONDS_PER_OUTPUT_TOKEN,
            ..event
        };
        self.ends.push(Reverse((end, tokens)));
        self.in_flight[replica] += 1;
        self.active_tokens[replica] += tokens;
        self.prefill_tokens[replica] += u64::from(uncached);
        Served {
            cached_tokens,
            ttft_s: first_s - self.now_s,
        }
    }

    /// Uncached tokens that each replica has been given.
    #[must_use]
    pub fn prefill_tokens(&self) -> &[u64] {
        &self.prefill_tokens
    }

    /// What a placement may look at.
    #[must_use]
    pub fn sight(&self) -> Sight<'_> {
        Sight { cluster: self }
    }
}

/// What a placement may look at. A gateway without telemetry sees the first three; the rest is for baselines whose makers read it from
/// their engines.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'c> {
    cluster: &'c Cluster,
}

impl<'c> Sight<'c> {
    /// The time, in seconds.
    #[must_use]
    pub fn now_s(&self) -> f64 {
        self.cluster.now_s
    }

    /// How many replicas there are.
    #[must_use]
    pub fn replicas(&self) -> usize {
        self.cluster.caches.len()
    }

    /// Requests in flight on each replica.
    #[must_use]
    pub fn in_flight(&self) -> &'c [u32] {
        &self.cluster.in_flight
    }

    /// Engine telemetry: tokens of the blocks that the requests in flight on each replica hold.
    #[must_use]
    pub fn active_tokens(&self) -> &'c [u64] {
        &self.cluster.active_tokens
    }

    /// Engine telemetry: tokens of prefill that wait on `replica`.
    #[must_use]
    pub fn queued_tokens(&self, replica: usize) -> f64 {
        let cluster = self.cluster;
        let queue_s = (cluster.free_s[replica] - cluster.now_s).max(0.0);
        queue_s * cluster.tokens_per_s
    }

    /// Engine telemetry: tokens of the leading run of `blocks` that `replica` holds.
    #[must_use]
    pub fn held_tokens(&self, replica: usize, blocks: &[Block]) -> u64 {
        self.cluster.caches[replica].held_tokens(blocks)
    }
}
