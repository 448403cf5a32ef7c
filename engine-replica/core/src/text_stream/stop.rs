//! Finding the first stop string in a text that comes in pieces.
//!
//! The first is the one whose end comes first; of several that end together, the longest. So the result hangs on the
//! text alone and not on how it was cut.

use super::TextDelta;

/// Holds the longest end of the text that may still become a stop string.
#[derive(Debug)]
pub(super) struct StopScan {
    /// Not empty, the longest first.
    stops: Vec<String>,
    /// Shorter than the longest stop string.
    held: String,
}

impl StopScan {
    pub(super) fn new(mut stops: Vec<String>) -> Self {
        stops.retain(|stop| !stop.is_empty());
        stops.sort_by_key(|stop| std::cmp::Reverse(stop.len()));
        Self {
            stops,
            held: String::new(),
        }
    }

    /// Text that is no part of a stop string, now that `text` has come.
    pub(super) fn push(&mut self, text: &str) -> TextDelta {
        if self.stops.is_empty() {
            return TextDelta {
                text: text.to_owned(),
                stopped: false,
            };
        }
        let seen = self.held.len();
        self.held += text;
        // No stop string ended before this piece, or the text would have ended there.
        for end in seen + 1..=self.held.len() {
            let ended = |stop: &&String| self.held.as_bytes()[..end].ends_with(stop.as_bytes());
            if let Some(stop) = self.stops.iter().find(ended) {
                self.held.truncate(end - stop.len());
                return TextDelta {
                    text: self.finish(),
                    stopped: true,
                };
            }
        }
        let rest = self.held.split_off(self.safe_len());
        TextDelta {
            text: std::mem::replace(&mut self.held, rest),
            stopped: false,
        }
    }

    /// What was held, once no more text comes.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Bytes before the longest end that begins some stop string; none can end with a whole one here.
    fn safe_len(&self) -> usize {
        let longest = self.stops.first().map_or(0, String::len);
        let first = self.held.len().saturating_sub(longest);
        let begins = |at: &usize| {
            self.held
                .get(*at..)
                .is_some_and(|end| self.stops.iter().any(|s| s.starts_with(end)))
        };
        (first..self.held.len())
            .find(begins)
            .unwrap_or(self.held.len())
    }
}
