//! What the gateway believes of the replicas' caches and queues, behind one lock that is held for a decision or a note and never
//! across an await.

use std::sync::{Mutex, MutexGuard, PoisonError};

use routing_policies::estimate::{Estimates, ModelKey};
use routing_policies::ledger::{Account, Settled};
use routing_policies::placement::{Believed, Block, State};
use routing_policies::{Decision, Features, Policy, Reason, ReplicaId, ReplicaView, Seen, decide};
use tokio::time::Instant;

use super::sent::Placed;

/// Beliefs about all replicas, ratios of all models, the account of each replica.
#[derive(Debug)]
pub struct Beliefs {
    started: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    estimates: Estimates,
    accounts: Vec<Account>,
    /// Requests sent so far; numbers them.
    sent: u64,
}

/// What is believed of one replica, for operators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Tokens that its cache holds.
    pub cache_tokens: u64,
    /// Tokens that are believed to lie there.
    pub believed_tokens: u64,
    /// By how much predictions were wrong lately, as a share of the prompts' tokens.
    pub error: f64,
}

impl Beliefs {
    /// Nothing is believed yet of `replicas` replicas.
    #[must_use]
    pub fn new(replicas: usize) -> Self {
        Self {
            started: Instant::now(),
            inner: Mutex::new(Inner {
                state: State::default(),
                estimates: Estimates::default(),
                accounts: vec![Account::default(); replicas],
                sent: 0,
            }),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// A replica is there with a cache of so many tokens; what is believed of it stays as far as it fits.
    pub fn join(&self, replica: ReplicaId, cache_tokens: u64) {
        // More replicas than can be tracked are placed by load and rendezvous.
        self.inner().state.join(replica, cache_tokens);
    }

    /// A replica has lost its cache.
    pub fn forget(&self, replica: ReplicaId) {
        self.inner().state.leave(replica);
    }

    /// Bytes of a request that make one token of the model's prompt.
    #[must_use]
    pub fn bytes_per_token(&self, model: ModelKey) -> f64 {
        self.inner().estimates.bytes_per_token(model)
    }

    /// Decides by what is believed now.
    #[must_use]
    pub fn decide(
        &self,
        policy: &Policy,
        features: &Features<'_>,
        seen: Seen,
        views: &[ReplicaView],
    ) -> Decision {
        let now_s = self.now_s();
        decide(policy, features, seen, &self.inner().state, views, now_s)
    }

    /// Leading blocks of a prompt that a replica is believed to hold.
    #[must_use]
    pub fn held_blocks(&self, replica: ReplicaId, blocks: &[Block]) -> usize {
        self.inner().state.held_blocks(replica, blocks)
    }

    /// A request goes out to a replica. Gives its number and what was believed until then.
    pub(super) fn sent(&self, replica: ReplicaId, placed: &Placed, retry: bool) -> (u64, Believed) {
        let now_s = self.now_s();
        let mut inner = self.inner();
        inner.sent += 1;
        let number = inner.sent;
        let mut ask = placed.ask();
        // One conversation is one, however often it is sent.
        ask.new_conversation &= !retry;
        let believed = inner.state.sent(number, replica, &ask, now_s);
        if retry || placed.circumstances.reason == Reason::PinBrokenGone {
            let tokens = ask.prompt_tokens.saturating_sub(believed.here_tokens);
            inner.state.took_over(replica, tokens, now_s);
        }
        (number, believed)
    }

    pub(super) fn first_token(&self, number: u64, replica: ReplicaId) {
        let now_s = self.now_s();
        self.inner().state.first_token(number, replica, now_s);
    }

    pub(super) fn answered(&self, number: u64, replica: ReplicaId) {
        let now_s = self.now_s();
        self.inner().state.answered(number, replica, now_s);
    }

    pub(super) fn failed(
        &self,
        number: u64,
        replica: ReplicaId,
        blocks: &[Block],
        believed: &Believed,
    ) {
        self.inner().state.failed(number, replica, blocks, believed);
    }

    /// A replica told how long a prompt was.
    pub(super) fn counted(&self, model: ModelKey, bytes: u64, tokens: u64) {
        self.inner().estimates.learn(model, bytes, tokens);
    }

    /// A replica told how much of a prompt was cached: `cached_tokens` by the gateway's own estimate of tokens.
    pub(super) fn delivered(
        &self,
        (index, replica): (usize, ReplicaId),
        placed: &Placed,
        believed: &Believed,
        cached_tokens: u32,
        settled: &Settled,
    ) {
        let mut inner = self.inner();
        inner
            .state
            .delivered(replica, &placed.ask(), believed, cached_tokens);
        if let Some(account) = inner.accounts.get_mut(index) {
            account.add(placed.lane.as_ref(), settled);
        }
    }

    /// By how much predictions for one lane at one replica were wrong lately.
    #[must_use]
    pub fn lane_error(&self, index: usize, lane: &str) -> f64 {
        let inner = self.inner();
        let account = inner.accounts.get(index);
        account.map_or(0.0, |account| account.error_of(lane))
    }

    /// What is believed of one replica.
    #[must_use]
    pub fn standing(&self, index: usize, replica: ReplicaId) -> Standing {
        let inner = self.inner();
        let (believed_tokens, cache_tokens) = inner.state.filled(replica);
        Standing {
            cache_tokens,
            believed_tokens,
            error: inner.accounts.get(index).map_or(0.0, Account::error),
        }
    }
}
