//! What the gateway remembers for the rule: beliefs, queues, common blocks. Written on every send and first token, read by `rank`.

use std::collections::BTreeMap;

use super::beliefs::{Beliefs, REPLICAS_MAX};
use super::block::Block;
use super::common::Common;
use super::heirs::Heirs;
use super::pace::Pace;
use super::queue::Queue;
use super::settings::Settings;
use crate::key::{PlacementKey, ReplicaId};

/// Prompt tokens that a request of mean size leaves to prefill, before any was seen.
const MEAN_TOKENS_AT_FIRST: f64 = 1_000.0;
/// Part of the slack that is the same for every prompt, in tokens: the largest block that engines commonly use.
const SLACK_TOKENS: u32 = 64;
/// Part of the slack that grows with the prompt: one token in so many.
const SLACK_PART: u32 = 64;
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

/// What was believed of a prompt at the moment it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Believed {
    /// Tokens that the replica held.
    pub here_tokens: u32,
    /// Tokens that the replica with the most of it held.
    pub most_tokens: u32,
    /// Leading blocks that the replica held.
    here_blocks: usize,
    /// For those blocks the number of their last use, as runs: (first block, number). Falls with depth, so there are few.
    runs: Vec<(usize, u64)>,
    /// The number of the use that the request itself was.
    used: u64,
}

/// By how much a delivery may stay behind a belief of `tokens` and still confirm it: engines reuse whole blocks of their own, always
/// compute the last token, and count where the gateway estimates.
pub(crate) fn slack_tokens(tokens: u32) -> u32 {
    SLACK_TOKENS + tokens / SLACK_PART
}

/// All that the rule remembers. Bounded: beliefs by the caches' sizes, queues by [`super::WAITING_MAX`], common blocks by
/// [`super::COUNT_BLOCKS_MAX`], replicas by [`REPLICAS_MAX`].
#[derive(Clone, Debug)]
pub struct State {
    pub(super) slots: BTreeMap<ReplicaId, usize>,
    pub(super) queues: Vec<Queue>,
    /// Per slot the use of the request that last found less than was believed, until a later one finds what is older.
    doubts: Vec<Option<u64>>,
    pub(super) beliefs: Beliefs,
    pub(super) common: Common,
    pub(super) pace: Pace,
    pub(super) mean_tokens: f64,
    requests: u32,
    heirs: Heirs,
}

impl Default for State {
    fn default() -> Self {
        Self {
            slots: BTreeMap::new(),
            queues: Vec::new(),
            doubts: Vec::new(),
            beliefs: Beliefs::default(),
            common: Common::default(),
            pace: Pace::default(),
            mean_tokens: MEAN_TOKENS_AT_FIRST,
            requests: 0,
            heirs: Heirs::default(),
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
                    self.doubts.push(None);
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
            self.doubts[slot] = None;
            self.heirs.clear(slot);
        }
    }

    /// `request`, a number of the caller's, was sent to `replica`. Gives what is believed of its prompt; keep it for
    /// [`Self::delivered`] or [`Self::failed`].
    pub fn sent(
        &mut self,
        request: u64,
        replica: ReplicaId,
        ask: &Ask<'_>,
        now_s: f64,
    ) -> Believed {
        if ask.new_conversation {
            self.common.add(ask.blocks);
        }
        let Some(&slot) = self.slots.get(&replica) else {
            return Believed::default();
        };
        let mut uses = vec![None; ask.blocks.len()];
        let used = self
            .beliefs
            .insert(slot, ask.blocks, |place, used| uses[place] = Some(used));
        let held: Vec<u64> = uses.into_iter().map_while(|used| used).collect();
        let here = held.len();
        let most = self.beliefs.most_beside(slot, ask.blocks, here);
        let cached = ask.cached_tokens();
        let mut runs: Vec<(usize, u64)> = Vec::new();
        for (place, used) in held.into_iter().enumerate() {
            if runs.last().is_none_or(|(_, last)| *last != used) {
                runs.push((place, used));
            }
        }
        let believed = Believed {
            here_blocks: here,
            here_tokens: cached[here],
            most_tokens: cached[most],
            runs,
            used,
        };
        let uncached = ask.prompt_tokens - cached[here];
        self.queues[slot].sent(request, uncached, now_s);
        self.requests = (self.requests + 1).min(MEAN_REQUESTS);
        self.mean_tokens += (f64::from(uncached) - self.mean_tokens) / f64::from(self.requests);
        believed
    }

    /// `replica` has answered and told that `cached_tokens` of the prompt were cached, in the same estimate of tokens as `ask`'s.
    ///
    /// Where that is less than was believed by more than rounding explains, beliefs are forgotten at once: all that was used before
    /// the lost block, since engines drop what was used longest ago; and where a second one in a row finds less, all that was there
    /// before the first, since then it is the whole cache that is gone.
    pub fn delivered(
        &mut self,
        replica: ReplicaId,
        ask: &Ask<'_>,
        believed: &Believed,
        cached_tokens: u32,
    ) {
        let Some(&slot) = self.slots.get(&replica) else {
            return;
        };
        let doubt = self.doubts[slot];
        let enough = cached_tokens.saturating_add(slack_tokens(believed.here_tokens));
        if enough >= believed.here_tokens {
            let oldest = believed.runs.last().map(|(_, used)| *used);
            if oldest < doubt && oldest.is_some() {
                self.doubts[slot] = None;
            }
            return;
        }
        let cached = ask.cached_tokens();
        let missing = cached[1..].iter().position(|tokens| *tokens > enough);
        let used = missing.and_then(|missing| {
            let mut runs = believed.runs.iter().rev();
            runs.find(|(first, _)| *first <= missing)
        });
        let Some(&(_, used)) = used else {
            return;
        };
        match doubt.filter(|first| used < *first) {
            Some(first) => {
                self.beliefs.forget_until(slot, first - 1);
                self.doubts[slot] = None;
            }
            None => {
                self.beliefs.forget_until(slot, used);
                self.doubts[slot] = Some(believed.used);
            }
        }
    }

    /// `request` failed at `replica` before its first token, or was given up: the replica holds nothing of it but what it held before.
    pub fn failed(
        &mut self,
        request: u64,
        replica: ReplicaId,
        blocks: &[Block],
        believed: &Believed,
    ) {
        self.gone(request, replica);
        if let Some(&slot) = self.slots.get(&replica) {
            // Blocks that were held before stay; they only look more recently used than they are.
            let came = blocks.get(believed.here_blocks..).unwrap_or(&[]);
            self.beliefs.take_back(slot, came, believed.used);
        }
    }

    /// Leading blocks of `blocks` that `replica` is believed to hold.
    #[must_use]
    pub fn held_blocks(&self, replica: ReplicaId, blocks: &[Block]) -> usize {
        let held = self.slots.get(&replica);
        held.map_or(0, |&slot| self.beliefs.held(blocks)[slot])
    }

    /// `replica` took over a session whose own replica is gone, or failed it, with `tokens` to prefill.
    pub fn took_over(&mut self, replica: ReplicaId, tokens: u32, now_s: f64) {
        if let Some(&slot) = self.slots.get(&replica) {
            self.heirs.add(slot, tokens, now_s);
        }
    }

    /// What `replica` has lately taken over, in tokens, old ones at a discount.
    pub(crate) fn taken_over_tokens(&self, replica: ReplicaId) -> f64 {
        let slot = self.slots.get(&replica);
        slot.map_or(0.0, |&slot| self.heirs.tokens(slot))
    }

    /// Seconds that must be saved before a session leaves its replica.
    pub(crate) fn margin_s(&self, settings: &Settings) -> f64 {
        settings.leave_s_min.max(settings.stay * self.mean_s())
    }

    /// Seconds to prefill a request of mean size.
    pub(super) fn mean_s(&self) -> f64 {
        self.mean_tokens.max(1.0) * self.pace.line().per_token_s
    }

    /// Tokens that `replica` is believed to hold, and tokens that it has room for.
    #[must_use]
    pub fn filled(&self, replica: ReplicaId) -> (u64, u64) {
        let slot = self.slots.get(&replica);
        slot.map_or((0, 0), |&slot| self.beliefs.filled(slot))
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

    /// `request` was answered whole by `replica`. Its prefill took no longer than that, which is news where the pace says longer; where
    /// it does not, the time was decode and tells nothing.
    pub fn answered(&mut self, request: u64, replica: ReplicaId, now_s: f64) {
        if let Some(&slot) = self.slots.get(&replica)
            && let Some((tokens, seconds)) = self.queues[slot].answered(request, now_s)
        {
            let line = self.pace.line();
            let expected_s = line.fixed_s + line.per_token_s * f64::from(tokens);
            if seconds < expected_s {
                self.pace.add(f64::from(tokens), seconds);
            }
        }
    }

    /// `request` is no longer waited for at `replica`: it has failed.
    pub fn gone(&mut self, request: u64, replica: ReplicaId) {
        if let Some(&slot) = self.slots.get(&replica) {
            self.queues[slot].gone(request);
        }
    }
}

#[cfg(test)]
mod tests;
