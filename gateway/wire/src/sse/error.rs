//! Why an event stream cannot be read on.

use std::fmt;

/// The stream broke a bound. The reader stays failed: what follows could not be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseError {
    /// An event grew past the given number of bytes without its blank line.
    EventTooLong(usize),
}

impl fmt::Display for SseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EventTooLong(limit) => {
                write!(
                    f,
                    "server-sent event without its blank line after {limit} bytes"
                )
            }
        }
    }
}

impl std::error::Error for SseError {}
