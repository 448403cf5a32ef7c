//! Series of one replica by lane. Which lanes there are, the policy says; over reloads that may become many, so the number is bounded.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus::{IntCounter, IntCounterVec};
use routing_policies::lanes::LaneReason;
use routing_policies::ledger::{LANES_MAX, Miss, Settled};

/// The label of requests of a policy without lanes.
const NO_LANE: &str = "";
/// The label of lanes that came, over many reloads, after the bound was reached.
const OTHER_LANES: &str = "other";

/// Counters of tokens, each by replica and lane.
#[derive(Clone, Debug)]
pub(super) struct TokenVecs {
    pub(super) prompt: IntCounterVec,
    pub(super) cached: IntCounterVec,
    pub(super) predicted_cached: IntCounterVec,
    pub(super) missed: IntCounterVec,
    pub(super) completion: IntCounterVec,
    pub(super) reasoning: IntCounterVec,
}

/// The tokens of one replica in one lane.
#[derive(Clone, Debug)]
pub struct LaneTokens {
    /// Prompt tokens as the replica counted them.
    pub prompt: IntCounter,
    /// Prompt tokens whose KV the replica reused.
    pub cached: IntCounter,
    /// Prompt tokens whose KV the gateway expected the replica to reuse.
    pub predicted_cached: IntCounter,
    missed: [IntCounter; Miss::ALL.len()],
    /// Tokens generated.
    pub completion: IntCounter,
    /// Tokens generated as reasoning.
    pub reasoning: IntCounter,
}

impl LaneTokens {
    fn new(vecs: &TokenVecs, replica: &str, lane: &str) -> Self {
        let one = |vec: &IntCounterVec| vec.with_label_values(&[replica, lane]);
        let missed = |miss: Miss| {
            vecs.missed
                .with_label_values(&[replica, lane, miss.as_str()])
        };
        Self {
            prompt: one(&vecs.prompt),
            cached: one(&vecs.cached),
            predicted_cached: one(&vecs.predicted_cached),
            missed: Miss::ALL.map(missed),
            completion: one(&vecs.completion),
            reasoning: one(&vecs.reasoning),
        }
    }

    /// Counts what was predicted of a request's prompt and what was missed.
    pub fn settled(&self, settled: &Settled) {
        self.predicted_cached.inc_by(settled.predicted);
        for (counter, tokens) in self.missed.iter().zip(settled.missed) {
            counter.inc_by(tokens);
        }
    }

    /// Tokens missed for this cause.
    #[must_use]
    pub fn missed(&self, miss: Miss) -> u64 {
        self.missed[miss as usize].get()
    }
}

/// The tokens of one replica, lane by lane.
#[derive(Debug)]
pub struct Lanes {
    vecs: TokenVecs,
    replica: String,
    without: Arc<LaneTokens>,
    /// At most [`LANES_MAX`], and one for the others.
    lanes: RwLock<BTreeMap<Arc<str>, Arc<LaneTokens>>>,
}

impl Lanes {
    pub(super) fn new(vecs: &TokenVecs, replica: &str) -> Self {
        Self {
            vecs: vecs.clone(),
            replica: replica.to_owned(),
            without: Arc::new(LaneTokens::new(vecs, replica, NO_LANE)),
            lanes: RwLock::default(),
        }
    }

    /// The policy has these lanes: their series begin with 0.
    pub fn know<'l>(&self, names: impl IntoIterator<Item = &'l Arc<str>>) {
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            let room = lanes.len() < LANES_MAX;
            let name = if room {
                name.clone()
            } else {
                OTHER_LANES.into()
            };
            let label = name.clone();
            let make = || Arc::new(LaneTokens::new(&self.vecs, &self.replica, &label));
            lanes.entry(name).or_insert_with(make);
        }
    }

    /// The tokens of this lane; `None` is a request of a policy without lanes.
    #[must_use]
    pub fn tokens(&self, lane: Option<&str>) -> Arc<LaneTokens> {
        let Some(lane) = lane else {
            return self.without.clone();
        };
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        let found = lanes.get(lane).or_else(|| lanes.get(OTHER_LANES));
        found.unwrap_or(&self.without).clone()
    }

    /// Each lane with its tokens, in the order of their names; those of requests without one are not among them.
    #[must_use]
    pub fn all(&self) -> Vec<(Arc<str>, Arc<LaneTokens>)> {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        let pairs = lanes.iter();
        pairs
            .map(|(name, tokens)| (name.clone(), tokens.clone()))
            .collect()
    }

    /// One figure over all lanes.
    pub fn sum(&self, figure: impl Fn(&LaneTokens) -> u64) -> u64 {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        let of_lanes: u64 = lanes.values().map(|tokens| figure(tokens)).sum();
        of_lanes + figure(&self.without)
    }
}

/// Counters of requests by lane and reason.
#[derive(Debug)]
pub(super) struct LaneRequests {
    vec: IntCounterVec,
    /// At most [`LANES_MAX`], and one for the others.
    lanes: RwLock<BTreeMap<Arc<str>, [IntCounter; LaneReason::ALL.len()]>>,
}

impl LaneRequests {
    pub(super) fn new(vec: IntCounterVec) -> Self {
        let lanes = RwLock::default();
        Self { vec, lanes }
    }

    pub(super) fn count(&self, lane: &Arc<str>, reason: LaneReason) {
        let place = reason as usize;
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counters) = lanes.get(lane) {
            return counters[place].inc();
        }
        drop(lanes);
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        let room = lanes.len() < LANES_MAX;
        let name = if room {
            lane.clone()
        } else {
            OTHER_LANES.into()
        };
        let label = name.clone();
        let make = || {
            let one = |reason: LaneReason| self.vec.with_label_values(&[&*label, reason.as_str()]);
            LaneReason::ALL.map(one)
        };
        lanes.entry(name).or_insert_with(make)[place].inc();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Metrics;
    use super::*;

    #[test]
    fn lanes_past_the_bound_share_one_series() {
        let metrics = Metrics::new();
        let replica = metrics.replica("r");
        let names: Vec<Arc<str>> = (0..LANES_MAX + 3)
            .map(|n| format!("lane-{n}").into())
            .collect();
        for name in &names {
            replica.lanes.know([name]);
            replica.lanes.tokens(Some(name)).prompt.inc();
        }
        replica.lanes.tokens(None).prompt.inc();
        assert_eq!(replica.lanes.tokens(Some(&names[7])).prompt.get(), 1);
        assert_eq!(replica.lanes.tokens(Some(OTHER_LANES)).prompt.get(), 3);
        assert_eq!(replica.lanes.all().len(), LANES_MAX + 1);
        let prompts = replica.lanes.sum(|tokens| tokens.prompt.get());
        assert_eq!(prompts, LANES_MAX as u64 + 4);
        // A lane that no policy has told of takes no series of its own.
        replica.lanes.tokens(Some("unheard of")).prompt.inc();
        assert!(!metrics.text().contains("unheard"));
    }
}
