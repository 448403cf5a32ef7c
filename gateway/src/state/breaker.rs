//! Whether a replica that is ready by its probes also answers requests. One that fails them is left alone for a while, and then tried
//! with one request at a time. A value: time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// Failed requests in a row before a replica is left alone. One may be that request's own fault; a replica that fails everything has
/// the shortest queue of all and would draw every new session.
const FAILURES_TO_OPEN: u32 = 2;
/// How long a replica is left alone at first. It doubles with each trial that fails.
const DELAY_FIRST: Duration = Duration::from_secs(2);
/// The longest that a replica is left alone: one request in so long is what a broken one costs.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// What is known of one replica's answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    stage: Stage,
    /// How long the replica is left alone the next time.
    delay: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It takes requests; so many have failed in a row.
    Closed(u32),
    /// It takes none until then.
    Open(Instant),
    /// One request finds out how it is.
    Trial,
}

/// How a request went until the first byte of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// The replica answered.
    Well,
    /// It did not, or told of a fault of its own.
    Badly,
    /// Nobody knows: the client left first, or the replica was too busy.
    Unknown,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            stage: Stage::Closed(0),
            delay: DELAY_FIRST,
        }
    }
}

impl Breaker {
    /// Whether the replica is left alone, but for trials.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self.stage, Stage::Closed(_))
    }

    /// Whether the next request may go there.
    #[must_use]
    pub fn takes(&self, now: Instant) -> bool {
        match self.stage {
            Stage::Closed(_) => true,
            Stage::Open(until) => now >= until,
            Stage::Trial => false,
        }
    }

    // ## Open => Trial, where its time has come
    /// A request goes out. Gives whether it is the trial.
    pub fn begin(&mut self, now: Instant) -> bool {
        let trial = self.is_open() && self.takes(now);
        if trial {
            self.stage = Stage::Trial;
        }
        trial
    }

    // ## any => Closed where it went well; Closed => (Closed | Open); Trial => Open
    // Requests that went out before, or because no other replica was left, do not decide over a trial unless they went well.
    /// A request came back; `trial` is what [`Breaker::begin`] gave for it.
    pub fn end(&mut self, went: Went, trial: bool, now: Instant) {
        match (went, self.stage) {
            (Went::Well, _) => *self = Self::default(),
            (Went::Badly, Stage::Closed(failures)) => {
                let failures = failures.saturating_add(1);
                self.stage = Stage::Closed(failures);
                if failures >= FAILURES_TO_OPEN {
                    self.open(now);
                }
            }
            (Went::Badly, Stage::Trial) if trial => self.open(now),
            (Went::Unknown, Stage::Trial) if trial => self.stage = Stage::Open(now),
            _ => {}
        }
    }

    fn open(&mut self, now: Instant) {
        self.stage = Stage::Open(now + self.delay);
        self.delay = self.delay.saturating_mul(2).min(DELAY_MAX);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs events a second apart: `w` one request goes well, `b` badly, `u` nobody knows; `.` nothing happens. Gives for each whether
    /// the replica took requests at that time: `+` or `-`. A request that it does not take is not sent.
    #[track_caller]
    fn check(events: &str, took: &str) {
        let mut breaker = Breaker::default();
        let mut now = Instant::now();
        let seen: String = events
            .chars()
            .map(|event| {
                now += Duration::from_secs(1);
                let takes = breaker.takes(now);
                let went = match event {
                    'w' => Some(Went::Well),
                    'b' => Some(Went::Badly),
                    'u' => Some(Went::Unknown),
                    _ => None,
                };
                if let Some(went) = went.filter(|_| takes) {
                    let trial = breaker.begin(now);
                    breaker.end(went, trial, now);
                }
                if takes { '+' } else { '-' }
            })
            .collect();
        assert_eq!(seen, took, "{events}");
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_trial_that_goes_well_closes_it() {
        check("bwbwbw", "++++++");
        check("bub.w.", "+++-++");
        check("bb.", "++-");
        check("bb.w..", "++-+++");
        check("bb.wbbb", "++-+++-");
    }

    #[test]
    fn each_failed_trial_doubles_the_wait_and_a_good_one_ends_that() {
        check("bb.b...b.......b", "++-+---+-------+");
        check("bb.b...w.bb.b", "++-+---++++-+");
    }

    #[test]
    fn a_trial_without_a_result_gives_way_to_the_next_one() {
        check("bb.uub....", "++-+++---+");
    }

    #[test]
    fn one_trial_at_a_time() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        breaker.end(Went::Badly, false, now);
        breaker.end(Went::Badly, false, now);
        let later = now + DELAY_FIRST;
        assert!(breaker.begin(later));
        assert!(!breaker.takes(later) && !breaker.begin(later));
        // A failure from before the trial does not end it.
        breaker.end(Went::Badly, false, later);
        assert!(!breaker.takes(later + DELAY_MAX));
        breaker.end(Went::Badly, true, later);
        assert!(breaker.takes(later + DELAY_FIRST * 2));
    }

    proptest! {
        #[test]
        fn it_takes_a_request_again_after_the_longest_wait(events in proptest::collection::vec((0..3_u8, 0..70_u64), 0..40)) {
            let mut breaker = Breaker::default();
            let mut now = Instant::now();
            for (went, seconds) in events {
                now += Duration::from_secs(seconds);
                let trial = breaker.begin(now);
                let went = [Went::Well, Went::Badly, Went::Unknown][usize::from(went)];
                breaker.end(went, trial, now);
                prop_assert!(breaker.takes(now + DELAY_MAX));
                prop_assert_eq!(breaker.takes(now), !breaker.is_open() || trial && went == Went::Unknown);
            }
        }
    }
}
