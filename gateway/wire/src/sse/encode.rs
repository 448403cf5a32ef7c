//! Writes events.

use bytes::{BufMut, Bytes, BytesMut};

/// The data that ends an OpenAI stream.
pub const DONE_DATA: &[u8] = b"[DONE]";

/// The event that ends an OpenAI stream.
pub const DONE: Bytes = Bytes::from_static(b"data: [DONE]\n\n");

/// A comment event: keeps a quiet connection open, means nothing to a reader.
pub const COMMENT_PING: Bytes = Bytes::from_static(b": ping\n\n");

/// One event with `data`, one data field per line of it. CR, LF, and CR LF all end a line there; the reader gets LF.
#[must_use]
pub fn encode(data: &[u8]) -> Bytes {
    let mut event = BytesMut::with_capacity(data.len() + 8);
    let mut rest = data;
    loop {
        let end = memchr::memchr2(b'\n', b'\r', rest);
        event.put_slice(b"data: ");
        event.put_slice(&rest[..end.unwrap_or(rest.len())]);
        event.put_u8(b'\n');
        let Some(end) = end else { break };
        let pair = rest[end..].starts_with(b"\r\n");
        rest = &rest[end + if pair { 2 } else { 1 }..];
    }
    event.put_u8(b'\n');
    event.freeze()
}
