//! What was counted within the measured window.

use crate::client::{Answer, RequestError};

/// Latencies that one run keeps: eight minutes at 8,000 requests per second. More answers are counted but
/// have no part in the percentiles.
const SAMPLES_MAX: usize = 1 << 22;

/// Counts of one run. Closed before and after the measured window, when only failures are noted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    open: bool,
    /// Nanoseconds of each answer.
    pub(crate) latencies: Vec<u64>,
    /// Nanoseconds until each answer's first byte.
    pub(crate) first_bytes: Vec<u64>,
    pub(crate) requests: u64,
    /// Events of streams, those of unfinished answers too.
    pub(crate) events: u64,
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) errors: u64,
    /// Failures outside the window.
    pub(crate) errors_outside: u64,
    pub(crate) first_error: Option<String>,
    pub(crate) reconnects: u64,
}

impl Tally {
    /// Starts the window.
    pub(crate) fn open(&mut self) {
        self.open = true;
    }

    /// Ends the window.
    pub(crate) fn close(&mut self) {
        self.open = false;
    }

    /// Notes `events` that have just arrived.
    pub(crate) fn events(&mut self, events: u64) {
        if self.open {
            self.events += events;
        }
    }

    /// Notes that a connection had to be opened again.
    pub(crate) fn reconnected(&mut self) {
        self.reconnects += 1;
    }

    /// Notes how a request of `bytes_out` bytes ended.
    pub(crate) fn ended(&mut self, bytes_out: u64, outcome: Result<&Answer, &RequestError>) {
        match outcome {
            Ok(answer) if self.open => {
                self.requests += 1;
                self.bytes_out += bytes_out;
                self.bytes_in += answer.bytes;
                let usage = answer.usage.unwrap_or_default();
                self.prompt_tokens += usage.prompt_tokens;
                self.cached_tokens += usage.cached_tokens;
                if self.latencies.len() < SAMPLES_MAX {
                    self.latencies.push(nanoseconds(answer.latency));
                    self.first_bytes.push(nanoseconds(answer.first_byte));
                }
            }
            Ok(_) => {}
            Err(error) => {
                if self.open {
                    self.errors += 1;
                } else {
                    self.errors_outside += 1;
                }
                self.first_error.get_or_insert_with(|| error.to_string());
            }
        }
    }
}

fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The value at `share` (0 to 1) of `sorted`, by nearest rank; 0 for no values.
pub(crate) fn percentile(sorted: &[u64], share: f64) -> u64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    let rank = rank.clamp(1, sorted.len().max(1));
    sorted.get(rank - 1).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Answer, RequestError, Tally, percentile};
    use std::time::Duration;

    #[track_caller]
    fn check(sorted: &[u64], share: f64, expect: u64) {
        assert_eq!(percentile(sorted, share), expect, "{share} of {sorted:?}");
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        check(&[], 0.5, 0);
        check(&[7], 0.5, 7);
        check(&[7], 0.99, 7);
        check(&[1, 2, 3, 4], 0.5, 2);
        check(&[1, 2, 3, 4], 0.51, 3);
        check(&[1, 2, 3, 4], 0.0, 1);
        check(&[1, 2, 3, 4], 1.0, 4);
    }

    #[test]
    fn only_answers_within_the_window_count() {
        let answer = Answer {
            latency: Duration::from_micros(3),
            first_byte: Duration::from_micros(2),
            bytes: 10,
            usage: None,
        };
        let mut tally = Tally::default();
        tally.ended(5, Ok(&answer));
        tally.ended(5, Err(&RequestError::Short { bytes: 0 }));
        tally.open();
        tally.ended(5, Ok(&answer));
        tally.ended(5, Err(&RequestError::Short { bytes: 1 }));
        tally.close();
        tally.ended(5, Ok(&answer));
        assert_eq!(
            (tally.requests, tally.bytes_out, tally.bytes_in),
            (1, 5, 10)
        );
        assert_eq!((tally.errors, tally.errors_outside), (1, 1));
        assert_eq!(tally.latencies, [3_000]);
        assert_eq!(
            tally.first_error.as_deref(),
            Some("the answer ended early, after 0 bytes")
        );
    }
}
