//! Server-sent events: a cutter for relays, a decoder for readers, an encoder for writers.

mod boundary;
mod cut;
mod decode;
mod encode;
mod error;
mod fields;

pub use cut::{Frame, FrameCutter};
pub use decode::{Decoder, Event};
pub use encode::{COMMENT_PING, DONE, DONE_DATA, encode};
pub use error::SseError;

#[cfg(test)]
mod tests;
