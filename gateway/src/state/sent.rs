//! A request at a replica, from the moment it goes out until the last of its answer is gone: what it does to the beliefs.

use std::sync::Arc;

use chat_wire::chunk::UsageScan;
use routing_policies::estimate::ModelKey;
use routing_policies::ledger::{Circumstances, settle};
use routing_policies::placement::{Ask, Believed, Block};
use routing_policies::{PlacementKey, ReplicaId};

use super::Known;
use super::replicas::{InFlight, Replica};

/// How a request was placed, as far as its beliefs and its account need it.
#[derive(Debug)]
pub struct Placed {
    /// Its model.
    pub model: ModelKey,
    /// Bytes of its tools and messages.
    pub bytes: u64,
    /// Its prompt's length by the gateway's estimate.
    pub prompt_tokens: u32,
    /// Its prompt's blocks; none where the policy places it by load alone.
    pub blocks: Vec<Block>,
    /// Whether nothing that it belongs to was seen before.
    pub new_conversation: bool,
    /// The replica that served its session last.
    pub home: Option<ReplicaId>,
    /// Breaks ties.
    pub key: PlacementKey,
    /// The lane that it takes, where the policy has lanes.
    pub lane: Option<Arc<str>>,
    /// What its misses can be explained by; whether it failed over is known later.
    pub circumstances: Circumstances,
}

impl Placed {
    pub(super) fn ask(&self) -> Ask<'_> {
        Ask {
            prompt_tokens: self.prompt_tokens,
            blocks: &self.blocks,
            new_conversation: self.new_conversation,
            home: self.home,
            key: self.key,
        }
    }
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No sign of life yet.
    Waiting,
    /// The replica works on it or has done so: what it computed stays in its cache.
    Served,
}

/// One request at one replica. It rides in the body of the answer, so every ending takes it back.
#[derive(Debug)]
pub struct Sent {
    known: Arc<Known>,
    in_flight: InFlight,
    placed: Arc<Placed>,
    number: u64,
    believed: Believed,
    failed_over: bool,
    stage: Stage,
}

impl Sent {
    /// The request goes out to `replica`, after others have failed where `failed_over`.
    #[must_use]
    pub fn new(
        known: &Arc<Known>,
        replica: &Arc<Replica>,
        placed: &Arc<Placed>,
        failed_over: bool,
    ) -> Self {
        let in_flight = InFlight::new(replica);
        let (number, believed) = known.beliefs.sent(replica.id(), placed, failed_over);
        Self {
            known: known.clone(),
            in_flight,
            placed: placed.clone(),
            number,
            believed,
            failed_over,
            stage: Stage::Waiting,
        }
    }

    /// The replica.
    #[must_use]
    pub fn replica(&self) -> &Arc<Replica> {
        self.in_flight.replica()
    }

    // ## Waiting => Served
    /// The first token of a stream has come.
    pub fn first_token(&mut self) {
        if std::mem::replace(&mut self.stage, Stage::Served) == Stage::Waiting {
            let id = self.replica().id();
            self.known.beliefs.first_token(self.number, id);
        }
    }

    // ## Waiting => Served
    /// A whole answer has come: the replica is done with it, and nobody knows when its first token was there.
    pub fn answered(&mut self) {
        if std::mem::replace(&mut self.stage, Stage::Served) == Stage::Waiting {
            let id = self.replica().id();
            self.known.beliefs.answered(self.number, id);
        }
    }

    /// The replica told what the prompt was made of: counts it, and holds it against what was believed.
    pub fn usage(&self, usage: UsageScan) {
        let (replica, placed) = (self.replica(), &*self.placed);
        let tokens = replica.metrics().lanes.tokens(placed.lane.as_deref());
        tokens.prompt.inc_by(usage.prompt_tokens);
        tokens.cached.inc_by(usage.cached_tokens.unwrap_or(0));
        tokens.completion.inc_by(usage.completion_tokens);
        let reasoning = usage.reasoning_tokens.unwrap_or(0);
        tokens.reasoning.inc_by(reasoning);
        let beliefs = &self.known.beliefs;
        beliefs.counted(placed.model, placed.bytes, usage.prompt_tokens);
        // A replica that does not tell says nothing against any belief.
        let Some(cached) = usage.cached_tokens else {
            return;
        };
        let circumstances = Circumstances {
            failed_over: self.failed_over,
            ..placed.circumstances
        };
        let (estimated, prompt) = (placed.prompt_tokens, usage.prompt_tokens);
        let settled = settle(circumstances, estimated, &self.believed, prompt, cached);
        tokens.settled(&settled);
        let scaled = u128::from(cached) * u128::from(estimated) / u128::from(prompt.max(1));
        let scaled = u32::try_from(scaled).unwrap_or(u32::MAX);
        let at = (replica.index(), replica.id());
        beliefs.delivered(at, placed, &self.believed, scaled, &settled);
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if self.stage == Stage::Waiting {
            let (id, blocks) = (self.replica().id(), &self.placed.blocks);
            let beliefs = &self.known.beliefs;
            beliefs.failed(self.number, id, blocks, &self.believed);
        }
    }
}
