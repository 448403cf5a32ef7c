//! How long a request would wait at a replica, from nothing but what the gateway sent there and when first tokens came back.

use std::collections::VecDeque;

use super::pace::{Line, Pace};

/// Requests without a first token that are remembered per replica; past it the oldest is taken for lost.
pub const WAITING_MAX: usize = 65_536;

/// The prefill queue of one replica: requests sent and not yet seen a first token for, and the pace at which they are worked off.
///
/// Invariant: `tokens` is the sum of those of `waiting`.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    tokens: u64,
    last_first_token_s: f64,
    pace: Pace,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: u64,
    tokens: u32,
    sent_s: f64,
}

impl Queue {
    /// `request` was sent with `tokens` to prefill.
    pub(super) fn sent(&mut self, request: u64, tokens: u32, now_s: f64) {
        if self.waiting.len() == WAITING_MAX
            && let Some(lost) = self.waiting.pop_front()
        {
            self.tokens -= u64::from(lost.tokens);
        }
        self.tokens += u64::from(tokens);
        self.waiting.push_back(Waiting {
            request,
            tokens,
            sent_s: now_s,
        });
    }

    /// The first token of `request` came. The replica worked on it from when it was sent or, where others were before it, from their
    /// last first token on: one more sample of its pace.
    pub(super) fn first_token(&mut self, request: u64, now_s: f64) {
        if let Some(done) = self.take(request) {
            let begun_s = done.sent_s.max(self.last_first_token_s);
            let took_s = (now_s - begun_s).max(0.0);
            self.pace.add(f64::from(done.tokens), took_s);
            self.last_first_token_s = now_s.max(self.last_first_token_s);
        }
    }

    /// `request` ended without a first token, if it waits here.
    pub(super) fn gone(&mut self, request: u64) {
        self.take(request);
    }

    /// What prefills take here, as learned.
    pub(super) fn line(&self) -> Line {
        self.pace.line()
    }

    /// Time until a request sent now would be begun, in seconds: what waits, less what has been done on the first in line.
    pub(super) fn wait_s(&self, now_s: f64) -> f64 {
        let Some(first) = self.waiting.front() else {
            return 0.0;
        };
        let line = self.line();
        let takes_s = |requests: f64, tokens: f64| {
            requests * line.fixed_s + tokens * line.per_token_s
        };
        let begun_s = first.sent_s.max(self.last_first_token_s);
        let done_s = (now_s - begun_s).clamp(0.0, takes_s(1.0, f64::from(first.tokens)));
        (takes_s(self.waiting.len() as f64, self.tokens as f64) - done_s).max(0.0)
    }

    fn take(&mut self, request: u64) -> Option<Waiting> {
        let place = self.waiting.iter().position(|w| w.request == request)?;
        let taken = self.waiting.remove(place)?;
        self.tokens -= u64::from(taken.tokens);
        Some(taken)
    }
}
