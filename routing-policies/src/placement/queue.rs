//! How long a request would wait at a replica, from nothing but what the gateway sent there and when first tokens came back.

use std::collections::VecDeque;

use super::pace::Line;

/// Requests without a first token that are remembered per replica; past it the oldest is taken for lost.
pub const WAITING_MAX: usize = 65_536;

/// The prefill queue of one replica: requests sent and not yet seen a first token for.
///
/// Invariant: `tokens` is the sum of those of `waiting`.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    tokens: u64,
    last_first_token_s: f64,
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

    /// The first token of `request` came. Gives (tokens, seconds) of its prefill: the replica worked on it from when it was sent or,
    /// where others were before it, from their last first token on.
    pub(super) fn first_token(&mut self, request: u64, now_s: f64) -> Option<(u32, f64)> {
        let done = self.take(request)?;
        let begun_s = done.sent_s.max(self.last_first_token_s);
        self.last_first_token_s = now_s.max(self.last_first_token_s);
        Some((done.tokens, (now_s - begun_s).max(0.0)))
    }

    /// `request` was answered whole. Gives (tokens, seconds) where its prefill took those seconds at the most: the rest was decode, and
    /// nobody knows when it began, so the next in line learns nothing from it.
    pub(super) fn answered(&mut self, request: u64, now_s: f64) -> Option<(u32, f64)> {
        let done = self.take(request)?;
        let begun_s = done.sent_s.max(self.last_first_token_s);
        Some((done.tokens, (now_s - begun_s).max(0.0)))
    }

    /// `request` ended without a first token, if it waits here.
    pub(super) fn gone(&mut self, request: u64) {
        self.take(request);
    }

    /// Time until a request sent now would be begun, in seconds, where prefills take what `line` says: what waits, less what has been
    /// done on the first in line.
    pub(super) fn wait_s(&self, line: Line, now_s: f64) -> f64 {
        let Some(first) = self.waiting.front() else {
            return 0.0;
        };
        let takes_s =
            |requests: f64, tokens: f64| requests * line.fixed_s + tokens * line.per_token_s;
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

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Line = Line {
        fixed_s: 0.1,
        per_token_s: 0.001,
    };

    /// Requests of `tokens`, all sent at 0 s and the first `done` of them answered at 2 s, leave a wait of `expect` seconds at `now_s`.
    #[track_caller]
    fn check(tokens: &[u32], done: u64, now_s: f64, expect: f64) {
        let mut queue = Queue::default();
        for (request, &tokens) in tokens.iter().enumerate() {
            queue.sent(request as u64, tokens, 0.0);
        }
        for request in 0..done {
            assert!(queue.first_token(request, 2.0).is_some());
        }
        assert!(queue.first_token(99, 2.0).is_none(), "unknown to it");
        queue.gone(99);
        let wait_s = queue.wait_s(LINE, now_s);
        assert!((wait_s - expect).abs() < 1e-9, "{wait_s} is not {expect}");
    }

    #[test]
    fn a_queue_is_worked_off_as_time_goes_by() {
        check(&[], 0, 0.0, 0.0);
        check(&[900, 400], 0, 0.0, 1.0 + 0.5);
        check(&[900, 400], 0, 0.6, 0.4 + 0.5);
    }

    #[test]
    fn only_the_first_in_line_is_taken_to_be_worked_on() {
        check(&[900, 400], 0, 50.0, 0.5);
    }

    #[test]
    fn the_next_is_begun_when_the_one_before_has_its_first_token() {
        check(&[900, 400], 1, 2.2, 0.3);
        check(&[900, 400], 2, 2.2, 0.0);
    }

    #[test]
    fn a_prefill_took_the_time_since_the_one_before_it() {
        let mut queue = Queue::default();
        queue.sent(1, 10, 0.0);
        queue.sent(2, 20, 0.5);
        assert_eq!(queue.first_token(1, 2.0), Some((10, 2.0)));
        assert_eq!(queue.first_token(2, 5.0), Some((20, 3.0)));
    }

    #[test]
    fn a_whole_answer_bounds_its_own_prefill_and_no_other() {
        let mut queue = Queue::default();
        queue.sent(1, 10, 0.0);
        queue.sent(2, 20, 0.5);
        assert_eq!(queue.answered(1, 2.0), Some((10, 2.0)));
        assert_eq!(queue.answered(1, 2.0), None);
        assert_eq!(queue.first_token(2, 5.0), Some((20, 4.5)));
    }

    #[test]
    fn past_the_bound_the_oldest_is_lost() {
        let mut queue = Queue::default();
        for request in 0..=WAITING_MAX as u64 {
            queue.sent(request, 1, 0.0);
        }
        assert_eq!(queue.waiting.len(), WAITING_MAX);
        assert_eq!(queue.tokens, WAITING_MAX as u64);
    }
}
