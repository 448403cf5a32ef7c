//! Reads events as text, for a client of a stream.

use bytes::Bytes;

use super::cut::FrameCutter;
use super::error::SseError;
use super::fields::each_field;

/// One event that carries data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The `event` field: the kind of event, empty where the stream does not say.
    pub kind: String,
    /// The data fields joined by LF; never empty. Bytes that are not UTF-8 become U+FFFD.
    pub data: String,
}

/// Turns chunks into events; where the chunks are cut means nothing. Events without data (comments, pings, `retry`, `id`) are passed
/// over, and so is an event that never got its blank line, as the standard has it.
#[derive(Debug)]
pub struct Decoder {
    cutter: FrameCutter,
    first: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// At the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self {
            cutter: FrameCutter::new(),
            first: true,
        }
    }

    /// Takes the next chunk and returns the events that it completes, in order.
    ///
    /// # Errors
    /// An event longer than [`crate::limits::SSE_EVENT_BYTES_MAX`]; the events before it in the same chunk are lost with it.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<Event>, SseError> {
        self.cutter.push(Bytes::copy_from_slice(chunk));
        let mut events = Vec::new();
        while let Some(frame) = self.cutter.next_frame()? {
            let first = std::mem::take(&mut self.first);
            let Some(data) = frame.data else { continue };
            let mut kind = String::new();
            each_field(&frame.raw, first, |name, value| {
                if name == b"event" {
                    kind = String::from_utf8_lossy(&frame.raw[value]).into_owned();
                }
            });
            events.push(Event {
                kind,
                data: String::from_utf8_lossy(&data).into_owned(),
            });
        }
        Ok(events)
    }
}
