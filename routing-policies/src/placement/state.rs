//! What the gateway remembers for the rule: beliefs, queues, common blocks. Written on every send and first token, read by `rank`.

use std::collections::BTreeMap;

use super::beliefs::{Beliefs, REPLICAS_MAX};
use super::block::Block;
use super::common::Common;
use super::pace::Pace;
use super::queue::Queue;
use crate::key::{PlacementKey, ReplicaId};

/// Prompt tokens that a request of mean size leaves to prefill, before any was seen.
const MEAN_TOKENS_AT_FIRST: f64 = 1_000.0;
/// Requests over which the mean runs.
const MEAN_REQUESTS: u32 = 100;

/// A request, as the rule sees it.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Length of its prompt in tokens, as well as the gateway knows.
    pub prompt_tokens: u32,
    /// Its prompt's blocks, first one first; they may end before the prompt does.
    pub blocks: &'a [Block],
    /// Whether nothing it belongs to was seen before: no pin, no earlier turn.
    pub new_conversation: bool,
    /// The replica that served its session last.
    pub home: Option<ReplicaId>,
    /// Breaks ties: the same key prefers the same replicas on every gateway.
    pub key: PlacementKey,
}

impl Ask<'_> {
    /// Tokens of the prompt that are cached, by the number of leading blocks that a replica holds; never more than the prompt.
    pub(super) fn cached_tokens(&self) -> Vec<u32> {
        let mut cached = Vec::with_capacity(self.blocks.len() + 1);
        let mut tokens = 0_u32;
        cached.push(tokens);
        for block in self.blocks {
            tokens = tokens.saturating_add(block.tokens).min(self.prompt_tokens);
            cached.push(tokens);
        }
        cached
    }
}

/// All that the rule remembers. Bounded: beliefs by the caches' sizes, queues by [`super::WAITING_MAX`], common blocks by
/// [`super::COUNT_BLOCKS_MAX`], replicas by [`REPLICAS_MAX`].
#[derive(Clone, Debug)]
pub struct State {
    pub(super) slots: BTreeMap<ReplicaId, usize>,
    pub(super) queues: Vec<Queue>,
    pub(super) beliefs: Beliefs,
    pub(super) common: Common,
    pub(super) pace: Pace,
    pub(super) mean_tokens: f64,
    requests: u32,
}

impl Default for State {
    fn default() -> Self {
        Self {
            slots: BTreeMap::new(),
            queues: Vec::new(),
            beliefs: Beliefs::default(),
            common: Common::default(),
            pace: Pace::default(),
            mean_tokens: MEAN_TOKENS_AT_FIRST,
            requests: 0,
        }
    }
}

impl State {
    /// A replica is there, and its cache holds `cache_tokens` tokens. Said again, it changes the size and keeps the rest. False where
    /// [`REPLICAS_MAX`] are there already: then the replica is ranked as one of which nothing is known.
    pub fn join(&mut self, replica: ReplicaId, cache_tokens: u64) -> bool {
        let slot = match self.slots.get(&replica) {
            Some(&slot) => slot,
            None => {
                let taken = |slot: &usize| self.slots.values().any(|other| other == slot);
                let Some(slot) = (0..REPLICAS_MAX).find(|slot| !taken(slot)) else {
                    return false;
                };
                if slot == self.queues.len() {
                    self.queues.push(Queue::default());
                }
                self.slots.insert(replica, slot);
                slot
            }
        };
        self.beliefs.size(slot, cache_tokens);
        true
    }

    /// A replica has gone for good, or has restarted (then [`Self::join`] it anew): what it held and had to do is forgotten.
    pub fn leave(&mut self, replica: ReplicaId) {
        if let Some(slot) = self.slots.remove(&replica) {
            self.beliefs.size(slot, 0);
            self.queues[slot] = Queue::default();
        }
    }

    /// `request`, a number of the caller's, was sent to `replica`. Gives the tokens of its prompt that are believed to be cached there.
    pub fn sent(&mut self, request: u64, replica: ReplicaId, ask: &Ask<'_>, now_s: f64) -> u32 {
        if ask.new_conversation {
            self.common.add(ask.blocks);
        }
        let Some(&slot) = self.slots.get(&replica) else {
            return 0;
        };
        let held = self.beliefs.held(ask.blocks)[slot];
        let cached = ask.cached_tokens()[held];
        let uncached = ask.prompt_tokens - cached;
        self.beliefs.insert(slot, ask.blocks);
        self.queues[slot].sent(request, uncached, now_s);
        self.requests = (self.requests + 1).min(MEAN_REQUESTS);
        self.mean_tokens += (f64::from(uncached) - self.mean_tokens) / f64::from(self.requests);
        cached
    }

    /// The first token of `request` came from `replica`.
    pub fn first_token(&mut self, request: u64, replica: ReplicaId, now_s: f64) {
        if let Some(&slot) = self.slots.get(&replica) {
            let prefill = self.queues[slot].first_token(request, now_s);
            if let Some((tokens, seconds)) = prefill {
                self.pace.add(f64::from(tokens), seconds);
            }
        }
    }

    /// `request` ended at `replica` without a first token: refused, failed or given up.
    pub fn gone(&mut self, request: u64, replica: ReplicaId) {
        if let Some(&slot) = self.slots.get(&replica) {
            self.queues[slot].gone(request);
        }
    }
}
