//! What the gateway knows: the fleet, and where sessions and prefixes live. All of it is a belief about others,
//! and losing it costs time, never a wrong answer.

pub mod beliefs;
pub mod breaker;
pub mod gate;
pub mod health;
pub mod memory;
pub mod models;
pub mod policy;
pub mod replicas;
pub mod seats;
pub mod sent;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use routing_policies::ledger::Miss;
use routing_policies::{Policy, PrefixKey, ReplicaId, SessionKey};
use serde::Serialize;

use crate::config::Config;
use crate::metrics::Metrics;
use beliefs::Beliefs;
use memory::Memory;
use policy::{PolicyState, PolicyStore};
use replicas::{Fleet, Replica};
use seats::Seats;
use tokio::time::Instant;

/// Prefixes remembered per session pin: a conversation without an id leaves one key per turn.
const PREFIX_HOMES_PER_PIN: usize = 2;

/// Everything that a decision looks at.
#[derive(Debug)]
pub struct Known {
    /// The replicas and their models.
    pub fleet: Fleet,
    /// The routing policy.
    pub policy: PolicyStore,
    /// What is believed of the replicas' caches and queues.
    pub beliefs: Arc<Beliefs>,
    /// Named session to the index of its replica.
    pub sessions: Memory<SessionKey>,
    /// Conversation so far to the index of the replica that answered it.
    pub prefixes: Memory<PrefixKey>,
    /// Requests in flight by session, where the policy limits them.
    pub seats: Arc<Seats>,
    /// The series.
    pub metrics: Metrics,
}

impl Known {
    /// The state at start: nobody ready, nothing remembered.
    #[must_use]
    pub fn new(config: &Config, policy: PolicyStore, metrics: Metrics) -> Self {
        let room = MemoryRoom::of(policy.current().policy());
        let beliefs = Arc::new(Beliefs::new(config.replicas.len()));
        Self {
            fleet: Fleet::new(&config.replicas, &metrics, &beliefs),
            beliefs,
            sessions: Memory::new(room.sessions, room.ttl),
            prefixes: Memory::new(room.prefixes, room.ttl),
            policy,
            seats: Arc::default(),
            metrics,
        }
    }

    /// Gives the memory of sessions and prefixes the room that a new policy says; what fits stays. Gives how many pins of named sessions
    /// the new policy forgets, by their age or for want of room: those sessions are placed anew at their next turn. How many it does not
    /// recognise any more, as it looks for other headers or fields, cannot be known: only hashes of the names are kept.
    pub fn limit_memory(&self, policy: &Policy) -> usize {
        let room = MemoryRoom::of(policy);
        self.prefixes.limit(room.prefixes, room.ttl);
        let forgotten = self.sessions.limit(room.sessions, room.ttl);
        self.policy.note_forgotten(forgotten);
        forgotten
    }

    /// The state as JSON, for `/state`.
    #[must_use]
    pub fn describe(&self, draining: bool) -> Vec<u8> {
        let current = self.policy.current();
        let session = &current.policy().session;
        let replicas = self.fleet.replicas().iter();
        let replicas = replicas.map(|replica| self.describe_replica(replica));
        let state = State {
            draining,
            ready: self.fleet.is_ready() && !draining,
            replicas: replicas.collect(),
            models: self.fleet.with_models(models::FleetModels::names),
            pins: Pins {
                sessions: self.sessions.len(),
                prefixes: self.prefixes.len(),
                sessions_max: session.pins_max,
                ttl_seconds: session.pin_ttl_seconds,
            },
            policy: self.policy.describe(),
        };
        // A struct of strings and numbers always serialises.
        serde_json::to_vec_pretty(&state).unwrap_or_default()
    }

    fn describe_replica<'a>(&self, replica: &'a Replica) -> ReplicaState<'a> {
        let metrics = replica.metrics();
        let standing = self.beliefs.standing(replica.index(), replica.id());
        ReplicaState {
            name: replica.name(),
            address: replica.authority().as_str(),
            ready: replica.is_ready(),
            breaker_open: replica.gate().is_open(),
            instance: replica.instance(),
            in_flight: replica.in_flight(),
            prompt_tokens: metrics.prompt_tokens.get(),
            cached_tokens: metrics.cached_tokens.get(),
            predicted_cached_tokens: metrics.predicted_cached_tokens.get(),
            missed_tokens: Miss::ALL
                .map(|miss| (miss.as_str(), metrics.missed(miss)))
                .into(),
            cache_tokens: standing.cache_tokens,
            believed_tokens: standing.believed_tokens,
            prediction_error: standing.error,
        }
    }

    /// The replica that a value of [`Known::sessions`] or [`Known::prefixes`] means, and whether it has kept what it was remembered
    /// for: a restart since then makes the memory void.
    #[must_use]
    pub fn recall(&self, (index, used): (u16, Instant)) -> Option<(ReplicaId, bool)> {
        let replica = self.fleet.replicas().get(usize::from(index))?;
        Some((replica.id(), !replica.was_emptied_since(used)))
    }
}

/// How much a policy lets the gateway remember.
struct MemoryRoom {
    sessions: usize,
    prefixes: usize,
    ttl: Duration,
}

impl MemoryRoom {
    fn of(policy: &Policy) -> Self {
        let sessions = usize::try_from(policy.session.pins_max).unwrap_or(usize::MAX);
        Self {
            sessions,
            prefixes: sessions.saturating_mul(PREFIX_HOMES_PER_PIN),
            ttl: Duration::from_secs(u64::from(policy.session.pin_ttl_seconds)),
        }
    }
}

#[derive(Serialize)]
struct State<'a> {
    draining: bool,
    ready: bool,
    replicas: Vec<ReplicaState<'a>>,
    models: String,
    pins: Pins,
    policy: PolicyState,
}

#[derive(Serialize)]
struct ReplicaState<'a> {
    name: &'a str,
    address: &'a str,
    ready: bool,
    /// Ready by its probes or not, requests there fail: it gets trials only.
    breaker_open: bool,
    instance: Option<String>,
    in_flight: usize,
    prompt_tokens: u64,
    cached_tokens: u64,
    predicted_cached_tokens: u64,
    missed_tokens: BTreeMap<&'static str, u64>,
    /// Tokens that its cache holds.
    cache_tokens: u64,
    /// Tokens that are believed to lie there.
    believed_tokens: u64,
    /// Share of the last prompts' tokens by which the predicted and the delivered differ.
    prediction_error: f64,
}

#[derive(Serialize)]
struct Pins {
    sessions: usize,
    prefixes: usize,
    sessions_max: u32,
    ttl_seconds: u32,
}
