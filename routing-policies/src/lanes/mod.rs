//! Pools, lanes and the rules between them: which replicas a request may go to at all, before anything is weighed.

mod check;
mod condition;
mod settle;
mod think;

pub use settle::{LaneReason, NO_LIMIT, Past, Refused, Settled, Wish};
pub(crate) use think::THINKING;
pub use think::{BUDGET, Effort, LANE_TOKENS_MAX, Wishes};

pub use condition::{CONDITION_BYTES_MAX, Condition};

use std::sync::Arc;

use crate::key::ReplicaId;

/// Most pools, most lanes and most rules of one policy.
pub const TABLES_MAX: usize = 64;

/// The sections `[[pools]]`, `[[lanes]]` and `[[rules]]`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Lanes {
    /// In the order of the file.
    pub pools: Vec<Pool>,
    /// The first one takes what no rule claims. Without any, a request may go anywhere.
    pub lanes: Vec<Lane>,
    /// The first whose condition holds decides.
    pub rules: Vec<Rule>,
}

/// Replicas under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    name: String,
    replicas: Vec<String>,
    /// Of the replicas, in order: each request looks up each replica.
    ids: Vec<ReplicaId>,
}

/// A way that requests take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Its name; a request takes it along.
    pub name: Arc<str>,
    /// The name of its pool; `None` is all replicas.
    pub pool: Option<String>,
    /// Whether the model thinks; `None` is as the client says.
    pub thinking: Option<bool>,
    /// Tokens of thinking where the client names no budget; `None` is [`BUDGET`] where the lane thinks.
    pub budget: Option<u32>,
    /// Most tokens of thinking that a client may ask for.
    pub budget_max: Option<u32>,
    /// How hard the model thinks, for families that can be told.
    pub effort: Option<Effort>,
    /// Most tokens of an answer, its thinking among them.
    pub max_tokens: Option<u32>,
    /// What becomes of a client's wish that is not the lane's own.
    pub wishes: Wishes,
}

/// Sends requests to a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// Which requests.
    pub when: Condition,
    /// The name of the lane.
    pub lane: String,
}

/// What conditions may ask of a request. Headers are looked up beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Facts<'a> {
    /// The model asked for; empty where none is.
    pub model: &'a str,
    /// Whether the answer is to come as a stream.
    pub stream: bool,
    /// Tokens of the prompt, as well as the gateway knows.
    pub prompt_tokens: u32,
    /// Most tokens of the answer; 0 where the client sets no limit.
    pub max_tokens: u64,
    /// Messages of the conversation.
    pub messages: usize,
    /// Whether it brings tools.
    pub has_tools: bool,
    /// Whether something names its session.
    pub session: bool,
}

/// Which lane, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneChoice<'p> {
    /// The lane.
    pub lane: &'p Lane,
    /// Its pool; `None` is all replicas.
    pub pool: Option<&'p Pool>,
    /// The rule that chose it; `None` where none held, and it is the first lane.
    pub rule: Option<&'p Rule>,
    /// The first rule that could not be worked out for this request, which counts as one that does not hold.
    pub failed: Option<&'p Rule>,
    /// How much thinking the turn is worth; `None` where no rule asked.
    pub difficulty: Option<f64>,
}

impl Pool {
    /// The pool `name` of these replicas, by the names that the gateway's configuration gives them.
    #[must_use]
    pub fn new(name: String, replicas: Vec<String>) -> Self {
        let mut ids: Vec<ReplicaId> = replicas.iter().map(|name| ReplicaId::of(name)).collect();
        ids.sort_unstable();
        Self {
            name,
            replicas,
            ids,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of its replicas, in the order of the file.
    #[must_use]
    pub fn replicas(&self) -> &[String] {
        &self.replicas
    }

    /// Whether the replica is one of its.
    #[must_use]
    pub fn has(&self, replica: ReplicaId) -> bool {
        self.ids.binary_search(&replica).is_ok()
    }
}

impl Lane {
    /// The lane `name` that may go to all replicas and says nothing else.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            pool: None,
            thinking: None,
            budget: None,
            budget_max: None,
            effort: None,
            max_tokens: None,
            wishes: Wishes::default(),
        }
    }

    /// Tokens of thinking where the client names no budget; `None` is no limit.
    #[must_use]
    pub fn budget_or_usual(&self) -> Option<u32> {
        self.budget
            .or((self.thinking == Some(true)).then_some(BUDGET))
    }
}

/// Steps between difficulties that a session's past keeps apart, from 0 to 1.
const DIFFICULTY_STEPS: f64 = 1_000.0;

/// A difficulty as rules see it: one of a thousand steps, so that what is remembered of a turn is what its rules saw.
#[must_use]
pub fn difficulty_step(difficulty: f64) -> u16 {
    // Between 0 and 1000, so nothing is lost.
    (difficulty.clamp(0.0, 1.0) * DIFFICULTY_STEPS).round() as u16
}

/// The difficulty of a step.
#[must_use]
pub fn difficulty_of(step: u16) -> f64 {
    f64::from(step) / DIFFICULTY_STEPS
}

/// What the rules of a session see: the difficulty of the turn, or that of an earlier one while they differ by less than `margin`; and
/// whether it is the earlier one.
#[must_use]
pub fn steady(now: u16, earlier: Option<u16>, margin: f64) -> (u16, bool) {
    match earlier {
        Some(earlier) if difficulty_of(now.abs_diff(earlier)) < margin => (earlier, now != earlier),
        _ => (now, false),
    }
}

impl Lanes {
    /// Whether any lane leads to the replica; without lanes, requests may go anywhere.
    #[must_use]
    pub fn lead_to(&self, replica: ReplicaId) -> bool {
        let leads = |lane: &Lane| {
            let pool = self.pool(lane);
            pool.is_none_or(|pool| pool.has(replica))
        };
        self.lanes.is_empty() || self.lanes.iter().any(leads)
    }

    fn pool(&self, lane: &Lane) -> Option<&Pool> {
        let name = lane.pool.as_ref()?;
        self.pools.iter().find(|pool| pool.name == *name)
    }

    /// The lane of a request; `None` where the policy has no lanes. `header` gives a header's value by its lower-case name, and is
    /// asked only for those that rules mention; `difficulty` is asked, once at most, when it comes to a rule that mentions it.
    pub fn choose<'h>(
        &self,
        facts: &Facts<'_>,
        header: impl Fn(&str) -> Option<&'h [u8]>,
        difficulty: impl Fn() -> f64,
    ) -> Option<LaneChoice<'_>> {
        let first = self.lanes.first()?;
        let mut failed = None;
        let mut chosen = None;
        let mut judged = None;
        if !self.rules.is_empty() {
            let conditions = self.rules.iter().map(|rule| &rule.when);
            let mut request = condition::Request::new(facts, conditions, header);
            for rule in &self.rules {
                if rule.when.asks_difficulty() && judged.is_none() {
                    request.with_difficulty(*judged.insert(difficulty()));
                }
                match rule.when.holds(&request) {
                    Some(true) => {
                        chosen = Some(rule);
                        break;
                    }
                    Some(false) => {}
                    None => failed = failed.or(Some(rule)),
                }
            }
        }
        let named = |rule: &Rule| self.lanes.iter().find(|lane| *lane.name == *rule.lane);
        let lane = chosen.and_then(named).unwrap_or(first);
        Some(LaneChoice {
            lane,
            pool: self.pool(lane),
            rule: chosen,
            failed,
            difficulty: judged,
        })
    }
}

#[cfg(test)]
mod tests;
