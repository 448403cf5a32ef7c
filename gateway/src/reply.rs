//! The body of every answer on the client listener. Whatever has to end with the answer rides in it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::chat::events::EventRelay;
use crate::chat::plain::PlainRelay;
use crate::failure::Failure;
use crate::layers::admit::Permit;
use crate::layers::observe::Record;
use crate::state::seats::Seat;

/// Bytes for a client: made here, or passed on from a replica as they come.
#[derive(Debug)]
pub struct ReplyBody {
    source: Source,
    permit: Option<Permit>,
    seat: Option<Seat>,
    record: Option<Arc<Record>>,
}

#[derive(Debug)]
enum Source {
    Whole(Option<Bytes>),
    Plain(Box<PlainRelay>),
    Events(Box<EventRelay>),
}

impl ReplyBody {
    fn new(source: Source) -> Self {
        Self {
            source,
            permit: None,
            seat: None,
            record: None,
        }
    }

    /// A body that is all here.
    #[must_use]
    pub fn whole(bytes: Bytes) -> Self {
        Self::new(Source::Whole(Some(bytes)))
    }

    /// A replica's answer, passed on.
    #[must_use]
    pub fn plain(relay: PlainRelay) -> Self {
        Self::new(Source::Plain(Box::new(relay)))
    }

    /// A replica's stream, passed on event by event.
    #[must_use]
    pub fn events(relay: EventRelay) -> Self {
        Self::new(Source::Events(Box::new(relay)))
    }

    /// Holds the admission until this body is dropped.
    pub fn keep_permit(&mut self, permit: Permit) {
        self.permit = Some(permit);
    }

    /// Holds the session's seat until this body is dropped.
    pub fn keep_seat(&mut self, seat: Seat) {
        self.seat = Some(seat);
    }

    /// Holds the record open until this body is dropped.
    pub fn keep_record(&mut self, record: Arc<Record>) {
        self.record = Some(record);
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let next = match &mut self.get_mut().source {
            Source::Whole(bytes) => Poll::Ready(bytes.take().map(Ok)),
            Source::Plain(relay) => relay.poll_next(cx),
            Source::Events(relay) => relay.poll_next(cx).map(|next| next.map(Ok)),
        };
        next.map(|next| next.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Whole(bytes) => bytes.is_none(),
            Source::Plain(relay) => relay.is_end(),
            Source::Events(relay) => relay.is_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Source::Plain(relay) => relay
                .exact_len()
                .map_or_else(SizeHint::new, SizeHint::with_exact),
            Source::Events(_) => SizeHint::new(),
        }
    }
}
