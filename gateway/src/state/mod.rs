//! What the gateway knows: the fleet, and where sessions and prefixes live. All of it is a belief about others,
//! and losing it costs time, never a wrong answer.

pub mod beliefs;
pub mod breaker;
pub mod families;
pub mod gate;
pub mod health;
pub mod lanes;
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
use crate::metrics::{LaneTokens, Metrics};
use beliefs::Beliefs;
use lanes::SessionLanes;
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
    /// Which lane each session's last request took.
    pub lanes: SessionLanes,
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
        let fleet = Fleet::new(&config.replicas, &metrics, &beliefs);
        know_lanes(&fleet, policy.current().policy());
        Self {
            fleet,
            beliefs,
            sessions: Memory::new(room.sessions, room.ttl),
            prefixes: Memory::new(room.prefixes, room.ttl),
            lanes: SessionLanes::new(room.sessions, room.ttl),
            policy,
            seats: Arc::default(),
            metrics,
        }
    }

    /// Fits what is remembered to a new policy: sessions and prefixes get the room that it says, its lanes get series, and pins to replicas
    /// that none of its lanes leads to are forgotten. Gives how many pins of named sessions the policy forgets, by their age, for want of
    /// room or so: those sessions are placed anew at their next turn. How many it does not recognise any more, as it looks for other
    /// headers or fields, cannot be known: only hashes of the names are kept.
    pub fn fit(&self, policy: &Policy) -> usize {
        know_lanes(&self.fleet, policy);
        let room = MemoryRoom::of(policy);
        self.prefixes.limit(room.prefixes, room.ttl);
        self.lanes.limit(room.sessions, room.ttl);
        let limited = self.sessions.limit(room.sessions, room.ttl);
        let left = |index: u16| {
            let replica = self.fleet.replicas().get(usize::from(index));
            replica.is_none_or(|replica| !policy.lanes.lead_to(replica.id()))
        };
        let forgotten = limited + self.sessions.forget(left);
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
        let lanes = &replica.metrics().lanes;
        let standing = self.beliefs.standing(replica.index(), replica.id());
        let lane = |(name, tokens): (Arc<str>, Arc<LaneTokens>)| {
            let error = self.beliefs.lane_error(replica.index(), &name);
            (name.to_string(), TokensState::of(&tokens, error))
        };
        ReplicaState {
            name: replica.name(),
            address: replica.authority().as_str(),
            ready: replica.is_ready(),
            breaker_open: replica.gate().is_open(),
            instance: replica.instance(),
            in_flight: replica.in_flight(),
            tokens: TokensState {
                prompt_tokens: lanes.sum(|lane| lane.prompt.get()),
                cached_tokens: lanes.sum(|lane| lane.cached.get()),
                predicted_cached_tokens: lanes.sum(|lane| lane.predicted_cached.get()),
                missed_tokens: Miss::ALL
                    .map(|miss| (miss.as_str(), lanes.sum(|lane| lane.missed(miss))))
                    .into(),
                prediction_error: standing.error,
            },
            lanes: lanes.all().into_iter().map(lane).collect(),
            cache_tokens: standing.cache_tokens,
            believed_tokens: standing.believed_tokens,
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

/// The lanes of a policy get series at every replica.
fn know_lanes(fleet: &Fleet, policy: &Policy) {
    for replica in fleet.replicas() {
        let lanes = &policy.lanes.lanes;
        let names = lanes.iter().map(|lane| &lane.name);
        replica.metrics().lanes.know(names);
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
    #[serde(flatten)]
    tokens: TokensState,
    /// The same by lane, where the policy has or had lanes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    lanes: BTreeMap<String, TokensState>,
    /// Tokens that its cache holds.
    cache_tokens: u64,
    /// Tokens that are believed to lie there.
    believed_tokens: u64,
}

/// The account of a replica, or of a lane there.
#[derive(Serialize)]
struct TokensState {
    prompt_tokens: u64,
    cached_tokens: u64,
    predicted_cached_tokens: u64,
    missed_tokens: BTreeMap<&'static str, u64>,
    /// Share of the last prompts' tokens by which the predicted and the delivered differ.
    prediction_error: f64,
}

impl TokensState {
    fn of(tokens: &LaneTokens, prediction_error: f64) -> Self {
        Self {
            prompt_tokens: tokens.prompt.get(),
            cached_tokens: tokens.cached.get(),
            predicted_cached_tokens: tokens.predicted_cached.get(),
            missed_tokens: Miss::ALL
                .map(|miss| (miss.as_str(), tokens.missed(miss)))
                .into(),
            prediction_error,
        }
    }
}

#[derive(Serialize)]
struct Pins {
    sessions: usize,
    prefixes: usize,
    sessions_max: u32,
    ttl_seconds: u32,
}
