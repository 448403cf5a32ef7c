//! What was predicted and what was delivered: how far to trust what the gateway believes of a replica's cache, and why tokens were
//! computed that some cache had held.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::placement::{Believed, slack_tokens};
use crate::reason::Reason;

/// What one request still weighs in the error one request later: about the last ten count.
const REMEMBERED: f64 = 0.9;
/// Lanes that accounts and series are kept apart for. A policy has far fewer, but each reload may bring others.
pub const LANES_MAX: usize = 256;

/// Why a token of a prompt was computed and not reused. One of a closed set, fit for a metric's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Miss {
    /// No replica held it: text that was not there before.
    NewPrefix,
    /// Another replica held it, which was too busy.
    MovedByLoad,
    /// Another replica held it, which did not take the request.
    Failover,
    /// This replica was believed to hold it and has dropped it.
    Evicted,
    /// The replica that held it was restarted.
    Restarted,
    /// The session is known, but it does not say again what it said before.
    ChangedPrompt,
}

impl Miss {
    /// All causes, so that a metric can start each at zero; `as usize` is the place here.
    pub const ALL: [Self; 6] = [
        Self::NewPrefix,
        Self::MovedByLoad,
        Self::Failover,
        Self::Evicted,
        Self::Restarted,
        Self::ChangedPrompt,
    ];

    /// The word for a label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NewPrefix => "new_prefix",
            Self::MovedByLoad => "moved_by_load",
            Self::Failover => "failover",
            Self::Evicted => "evicted",
            Self::Restarted => "restarted",
            Self::ChangedPrompt => "changed_prompt",
        }
    }
}

/// What is known of a request when it is sent, as far as its misses can be explained by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// Why its first candidate is the first.
    pub reason: Reason,
    /// Whether an earlier candidate did not take it.
    pub failed_over: bool,
    /// Whether what was remembered of it lay on a replica that was restarted since.
    pub restarted: bool,
    /// Whether its session is known and yet none of its earlier turns was found in what it says.
    pub changed: bool,
}

/// One request's account, in tokens as the replica counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Tokens of the prompt.
    pub prompt: u64,
    /// Cached tokens that were predicted.
    pub predicted: u64,
    /// Cached tokens that were delivered.
    pub delivered: u64,
    /// Tokens that were computed, by cause, in the order of [`Miss::ALL`]; with `delivered` they make `prompt`.
    pub missed: [u64; Miss::ALL.len()],
}

/// Explains one request: `estimated` is the length of its prompt as estimated when it was sent, `believed` what was believed then in
/// the same measure; `prompt` and `cached` are what the replica told. Beliefs are brought to the replica's measure, so that a wrong
/// estimate of the prompt's length is no wrong belief.
#[must_use]
pub fn settle(
    circumstances: Circumstances,
    estimated: u32,
    believed: &Believed,
    prompt: u64,
    cached: u64,
) -> Settled {
    let measure = |tokens: u32| {
        let scaled = u128::from(tokens) * u128::from(prompt) / u128::from(estimated.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX).min(prompt)
    };
    let (here, most) = (
        measure(believed.here_tokens),
        measure(believed.most_tokens.max(believed.here_tokens)),
    );
    let delivered = cached.min(prompt);
    let mut missed = [0; Miss::ALL.len()];
    let mut add = |cause: Miss, tokens: u64| missed[cause as usize] += tokens;
    let here_lost = here.saturating_sub(delivered);
    let rounding = here_lost <= u64::from(slack_tokens(believed.here_tokens));
    let Circumstances {
        reason,
        failed_over,
        restarted,
        changed,
    } = circumstances;
    let new = match (restarted, changed) {
        (true, _) => Miss::Restarted,
        (false, true) => Miss::ChangedPrompt,
        (false, false) => Miss::NewPrefix,
    };
    let elsewhere = if failed_over || reason == Reason::PinBrokenGone {
        Miss::Failover
    } else {
        Miss::MovedByLoad
    };
    add(if rounding { new } else { Miss::Evicted }, here_lost);
    add(elsewhere, most - here.max(delivered).min(most));
    add(new, prompt - most.max(delivered));
    Settled {
        prompt,
        predicted: here,
        delivered,
        missed,
    }
}

/// The running account of one replica.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Ledger {
    prompt: f64,
    off: f64,
}

impl Ledger {
    /// One more request.
    pub fn add(&mut self, settled: &Settled) {
        let off = settled.predicted.abs_diff(settled.delivered);
        self.prompt = self.prompt * REMEMBERED + settled.prompt as f64;
        self.off = self.off * REMEMBERED + off as f64;
    }

    /// By how much predictions have been wrong lately, up or down, as a share of the prompts' tokens, 0 to 1.
    #[must_use]
    pub fn error(&self) -> f64 {
        if self.prompt > 0.0 {
            self.off / self.prompt
        } else {
            0.0
        }
    }
}

/// The account of one replica, and of each lane there.
#[derive(Clone, Debug, Default)]
pub struct Account {
    whole: Ledger,
    /// At most [`LANES_MAX`]; further ones count in `whole` only.
    lanes: BTreeMap<Arc<str>, Ledger>,
}

impl Account {
    /// One more request, which took `lane` where the policy has lanes.
    pub fn add(&mut self, lane: Option<&Arc<str>>, settled: &Settled) {
        self.whole.add(settled);
        let Some(lane) = lane else {
            return;
        };
        if let Some(ledger) = self.lanes.get_mut(lane) {
            ledger.add(settled);
        } else if self.lanes.len() < LANES_MAX {
            self.lanes.entry(lane.clone()).or_default().add(settled);
        }
    }

    /// [`Ledger::error`] of all requests.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.whole.error()
    }

    /// [`Ledger::error`] of one lane; 0 where none of its requests is known.
    #[must_use]
    pub fn error_of(&self, lane: &str) -> f64 {
        self.lanes.get(lane).map_or(0.0, Ledger::error)
    }
}

#[cfg(test)]
mod tests;
