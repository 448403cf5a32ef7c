//! Cuts a byte stream into whole events without changing a byte, for a relay.

use bytes::{Bytes, BytesMut};

use super::boundary::Boundary;
use super::error::SseError;
use super::fields::each_field;
use crate::limits::SSE_EVENT_BYTES_MAX;

/// One whole event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The event as it arrived, its blank line included. A CR at the very end of a chunk ends the event at once; the LF of that
    /// pair then opens the next frame, where it means nothing.
    pub raw: Bytes,
    /// What its data fields say, lines joined by LF: a view into `raw` where there is one line, `None` where there is no data
    /// field or all are empty (comments, pings, `retry`).
    pub data: Option<Bytes>,
}

impl Frame {
    /// Whether this event says that the stream is complete: its whole data is `[DONE]`.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.data.as_deref() == Some(super::DONE_DATA)
    }
}

/// Holds back the bytes of one incomplete event and nothing else.
///
/// Invariant: the frames' `raw` in order, then what [`FrameCutter::finish`] returns, are the pushed bytes, however they were cut.
#[derive(Debug)]
pub struct FrameCutter {
    /// Bytes of the current event from earlier chunks.
    tail: BytesMut,
    /// What has not been looked at yet.
    chunk: Bytes,
    boundary: Boundary,
    first: bool,
    event_bytes_max: usize,
}

impl Default for FrameCutter {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameCutter {
    /// At the start of a stream, with the bound [`SSE_EVENT_BYTES_MAX`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_event_bytes_max(SSE_EVENT_BYTES_MAX)
    }

    /// The same with another bound on one event, in bytes.
    #[must_use]
    pub fn with_event_bytes_max(event_bytes_max: usize) -> Self {
        Self {
            tail: BytesMut::new(),
            chunk: Bytes::new(),
            boundary: Boundary::new(),
            first: true,
            event_bytes_max,
        }
    }

    /// Takes the next chunk. Call [`FrameCutter::next_frame`] until it has no more before the next push:
    /// chunks that pile up are copied together.
    pub fn push(&mut self, chunk: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = chunk;
            return;
        }
        let mut joined = BytesMut::with_capacity(self.chunk.len() + chunk.len());
        joined.extend_from_slice(&self.chunk);
        joined.extend_from_slice(&chunk);
        self.chunk = joined.freeze();
    }

    /// The next whole event of what was pushed; `None` where the rest is incomplete.
    ///
    /// # Errors
    /// An event longer than the bound, whole or not; the stream cannot be read on then.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, SseError> {
        let end = self.boundary.advance(&self.chunk);
        let length = self.tail.len() + end.unwrap_or(self.chunk.len());
        if length > self.event_bytes_max {
            return Err(SseError::EventTooLong(self.event_bytes_max));
        }
        let Some(end) = end else {
            self.tail.extend_from_slice(&self.chunk);
            self.chunk.clear();
            return Ok(None);
        };
        let piece = self.chunk.split_to(end);
        let raw = if self.tail.is_empty() {
            piece
        } else {
            self.tail.extend_from_slice(&piece);
            self.tail.split().freeze()
        };
        let first = std::mem::take(&mut self.first);
        let data = data_of(&raw, first);
        Ok(Some(Frame { raw, data }))
    }

    /// At the end of the stream: the bytes of an event that never got its blank line; empty after a proper end.
    #[must_use]
    pub fn finish(mut self) -> Bytes {
        self.tail.extend_from_slice(&self.chunk);
        self.tail.freeze()
    }
}

/// The event's data, without a copy where it stands on one line.
fn data_of(raw: &Bytes, first: bool) -> Option<Bytes> {
    let mut one_line = None;
    let mut joined: Option<BytesMut> = None;
    each_field(raw, first, |name, value| {
        if name != b"data" {
            return;
        }
        match (&mut joined, &one_line) {
            (Some(joined), _) => {
                joined.extend_from_slice(b"\n");
                joined.extend_from_slice(&raw[value]);
            }
            (None, None) => one_line = Some(value),
            (None, Some(line)) => {
                let mut both = BytesMut::from(&raw[line.clone()]);
                both.extend_from_slice(b"\n");
                both.extend_from_slice(&raw[value]);
                joined = Some(both);
            }
        }
    });
    let data = match (joined, one_line) {
        (Some(joined), _) => joined.freeze(),
        (None, Some(line)) => raw.slice(line),
        (None, None) => return None,
    };
    (!data.is_empty()).then_some(data)
}
