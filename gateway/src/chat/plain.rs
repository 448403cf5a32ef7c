//! Passes an answer on that is no stream of events: a whole completion, or a replica's own error.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use chat_wire::chunk;
use http::StatusCode;

use crate::failure::Failure;
use crate::layers::observe::Record;
use crate::metrics::Outcome;
use crate::state::sent::Sent;
use crate::upstream::body::UpstreamBody;

/// Bytes of an answer that are looked at for its usage. A longer answer is passed on unread.
const READ_BYTES_MAX: usize = 8 << 20;

/// An answer on its way. Its bytes are passed on as they come and read once they are all there.
#[derive(Debug)]
pub struct PlainRelay {
    upstream: UpstreamBody,
    sent: Sent,
    status: StatusCode,
    record: Arc<Record>,
    /// Views of the chunks so far, for the usage; empty where the answer has none.
    seen: Vec<Bytes>,
    seen_bytes: usize,
    ended: bool,
}

impl PlainRelay {
    pub(super) fn new(
        upstream: UpstreamBody,
        mut sent: Sent,
        status: StatusCode,
        record: Arc<Record>,
    ) -> Self {
        if status.is_success() {
            sent.answered();
        }
        let mut relay = Self {
            upstream,
            sent,
            status,
            record,
            seen: Vec::new(),
            seen_bytes: 0,
            ended: false,
        };
        if relay.upstream.is_end() {
            relay.end();
        }
        relay
    }

    /// The next bytes; `None` at the proper end.
    ///
    /// # Errors
    /// The answer broke off. The client sees its connection closed before the last byte.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        match ready!(self.upstream.poll_chunk(cx)) {
            Some(Ok(chunk)) => {
                self.look_at(&chunk);
                // With a known length nobody asks for the end after the last chunk.
                if self.upstream.is_end() {
                    self.end();
                }
                Poll::Ready(Some(Ok(chunk)))
            }
            Some(Err(failure)) => {
                self.record.ended(failure.row().outcome);
                Poll::Ready(Some(Err(failure)))
            }
            None => {
                self.end();
                Poll::Ready(None)
            }
        }
    }

    /// Whether every byte has been handed out.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.ended
    }

    /// Bytes still to come, where the replica told.
    #[must_use]
    pub fn exact_len(&self) -> Option<u64> {
        self.upstream.exact_len()
    }

    fn look_at(&mut self, chunk: &Bytes) {
        self.seen_bytes = self.seen_bytes.saturating_add(chunk.len());
        if self.seen_bytes > READ_BYTES_MAX || !self.status.is_success() {
            self.seen = Vec::new();
        } else {
            self.seen.push(chunk.clone());
        }
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let outcome = match self.status {
            status if status.is_server_error() => Outcome::UpstreamError,
            status if status.is_client_error() => Outcome::ClientError,
            _ => Outcome::Ok,
        };
        self.record.ended(outcome);
        let whole = match &self.seen[..] {
            [] => return,
            [one] => one.clone(),
            many => many
                .iter()
                .fold(BytesMut::new(), |mut whole, piece| {
                    whole.extend_from_slice(piece);
                    whole
                })
                .freeze(),
        };
        if let Ok(answer) = chunk::scan(&whole)
            && let Some(usage) = answer.usage
        {
            self.sent.usage(usage);
        }
    }
}
