//! What can be changed at run time, by `GET /admin?knob=value&...` on any replica.

use std::time::Duration;

/// Chunks of one stream: an hour at the pace of an engine.
const CHUNKS_MAX: u64 = 100_000;
/// Longest wait, in microseconds.
const WAIT_US_MAX: u64 = 60_000_000;

/// How the replicas answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Knobs {
    /// Events of a streamed answer with the role's and the finish's, without the usage's and `[DONE]`.
    pub(crate) chunks: u64,
    /// Wait before each event but the first.
    pub(crate) delay: Duration,
    /// Wait before the first byte of an answer.
    pub(crate) first_byte: Duration,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            chunks: 100,
            delay: Duration::ZERO,
            first_byte: Duration::ZERO,
        }
    }
}

/// A change that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The knobs after it.
    pub(crate) knobs: Knobs,
    /// Whether counts and caches begin anew.
    pub(crate) reset: bool,
}

impl Knobs {
    /// Reads `query`. Knobs that it does not name stay as they are; one bad knob and nothing changes.
    pub(crate) fn change(self, query: &str) -> Result<Change, String> {
        let mut change = Change {
            knobs: self,
            reset: false,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("`{pair}` lacks a `=`"))?;
            let number = |range: std::ops::RangeInclusive<u64>| {
                value
                    .parse()
                    .ok()
                    .filter(|number| range.contains(number))
                    .ok_or_else(|| {
                        format!(
                            "`{name}` is `{value}`, expected {} to {}",
                            range.start(),
                            range.end()
                        )
                    })
            };
            match name {
                "chunks" => change.knobs.chunks = number(2..=CHUNKS_MAX)?,
                "delay_us" => change.knobs.delay = Duration::from_micros(number(0..=WAIT_US_MAX)?),
                "first_byte_us" => {
                    change.knobs.first_byte = Duration::from_micros(number(0..=WAIT_US_MAX)?)
                }
                "reset" => change.reset = number(0..=1)? == 1,
                _ => {
                    return Err(format!(
                        "no knob `{name}`: chunks, delay_us, first_byte_us, reset"
                    ));
                }
            }
        }
        Ok(change)
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Duration, Knobs};

    #[track_caller]
    fn check(query: &str, expect: Result<(u64, u64, u64, bool), &str>) {
        let expect = expect
            .map_err(str::to_owned)
            .map(|(chunks, delay, first_byte, reset)| Change {
                knobs: Knobs {
                    chunks,
                    delay: Duration::from_micros(delay),
                    first_byte: Duration::from_micros(first_byte),
                },
                reset,
            });
        assert_eq!(Knobs::default().change(query), expect, "{query}");
    }

    #[test]
    fn a_change_is_whole_or_not_at_all() {
        check("", Ok((100, 0, 0, false)));
        check(
            "chunks=7&delay_us=10000&first_byte_us=5&reset=1",
            Ok((7, 10_000, 5, true)),
        );
        check(
            "chunks=7&chunks=1",
            Err("`chunks` is `1`, expected 2 to 100000"),
        );
        check("reset", Err("`reset` lacks a `=`"));
        check(
            "pace=1",
            Err("no knob `pace`: chunks, delay_us, first_byte_us, reset"),
        );
    }
}
