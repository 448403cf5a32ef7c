//! Why a request would go where it goes: the decision, and what each replica would cost, from what a gateway would remember.

use std::collections::BTreeMap;

use crate::decide::{Features, PrefixSeen, ReplicaView, Seen, decide};
use crate::key::{PlacementKey, PrefixKey, ReplicaId, SessionKey};
use crate::placement::{Block, Ranked, State};
use crate::policy::Policy;
use crate::prefix::Chain;
use crate::reason::Reason;

/// One request, as the path of a request understands it.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Its session, where something names it.
    pub session: Option<SessionKey>,
    /// The keys of its messages.
    pub chain: Chain,
    /// Its prompt's blocks, first one first.
    pub blocks: Vec<Block>,
    /// Its prompt's length in tokens.
    pub prompt_tokens: u32,
}

/// What a gateway remembers that has seen a few requests. Time stands still at 0: every request that it has seen is answered.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    state: State,
    pins: BTreeMap<SessionKey, ReplicaId>,
    prefixes: BTreeMap<PrefixKey, ReplicaId>,
    requests: u64,
}

/// Where a request would go, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Every ready replica with its cost, first choice first.
    pub order: Vec<Ranked>,
    /// Why the first is the first.
    pub reason: Reason,
    /// Where the session is pinned.
    pub pin: Option<ReplicaId>,
    /// How many of the request's messages were seen before, and where.
    pub prefix: Option<(usize, ReplicaId)>,
}

impl Remembered {
    /// Nothing, with replicas that each cache so many tokens.
    pub fn new(replicas: impl IntoIterator<Item = (ReplicaId, u64)>) -> Self {
        let mut remembered = Self::default();
        for (replica, cache_tokens) in replicas {
            remembered.state.join(replica, cache_tokens);
        }
        remembered
    }

    /// `replica` has answered `turn`.
    pub fn answered(&mut self, policy: &Policy, turn: &Turn, replica: ReplicaId) {
        let ask = features(turn).ask(policy, self.seen(policy, turn));
        let request = self.requests;
        let _believed = self.state.sent(request, replica, &ask, 0.0);
        // It was not timed, so it must not teach how fast replicas are.
        self.state.gone(request, replica);
        self.requests += 1;
        if let Some(session) = turn.session {
            self.pins.insert(session, replica);
        }
        if let Some(key) = turn.chain.last().filter(|_| policy.session.infer) {
            self.prefixes.insert(key, replica);
        }
    }

    /// Where `turn` would go among `replicas`, which are those of its lane.
    #[must_use]
    pub fn explain(&self, policy: &Policy, turn: &Turn, replicas: &[ReplicaView]) -> Explanation {
        let seen = self.seen(policy, turn);
        let counts = seen.among(replicas);
        let decision = decide(policy, &features(turn), counts, &self.state, replicas, 0.0);
        Explanation {
            order: decision.candidates,
            reason: decision.reason,
            pin: seen.pin,
            prefix: self.deepest(policy, turn),
        }
    }

    fn pin(&self, turn: &Turn) -> Option<ReplicaId> {
        self.pins.get(&turn.session?).copied()
    }

    fn deepest(&self, policy: &Policy, turn: &Turn) -> Option<(usize, ReplicaId)> {
        let known = |key| self.prefixes.get(&key).copied();
        turn.chain.deepest(known).filter(|_| policy.session.infer)
    }

    fn seen(&self, policy: &Policy, turn: &Turn) -> Seen {
        let prefix = self
            .deepest(policy, turn)
            .map(|(depth, replica)| PrefixSeen {
                replica,
                whole: depth == turn.chain.keys().len(),
            });
        Seen {
            pin: self.pin(turn),
            prefix,
        }
    }
}

fn features(turn: &Turn) -> Features<'_> {
    Features {
        session: turn.session,
        root: (!turn.chain.keys().is_empty()).then(|| turn.chain.root()),
        body: PlacementKey::of_body(b""),
        prompt_tokens: turn.prompt_tokens,
        blocks: &turn.blocks,
    }
}

#[cfg(test)]
mod tests;
