//! The body of a replica's answer, which drives its own connection and gives it back when it is done.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use super::link::Link;
use crate::failure::Failure;
use crate::state::replicas::Replica;

/// Chunks of an answer as they arrive. Dropped early, it closes the connection, which tells the replica to stop.
#[derive(Debug)]
pub struct UpstreamBody {
    incoming: Incoming,
    /// `None` once the connection went back to the pool or broke.
    link: Option<Link>,
    replica: Arc<Replica>,
    idle: Duration,
    last_chunk: Instant,
    timer: Pin<Box<Sleep>>,
    /// The timer runs for this body; before its first wait it still has the deadline of the head.
    timing: bool,
}

impl UpstreamBody {
    pub(super) fn new(
        incoming: Incoming,
        link: Link,
        replica: Arc<Replica>,
        idle: Duration,
        timer: Pin<Box<Sleep>>,
    ) -> Self {
        let link = Some(link);
        let last_chunk = Instant::now();
        Self {
            incoming,
            link,
            replica,
            idle,
            last_chunk,
            timer,
            timing: false,
        }
    }

    /// The next chunk; `None` at the proper end.
    ///
    /// # Errors
    /// The connection broke before the end, or nothing came for too long.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        let next = match &mut self.link {
            Some(link) => link.poll_frame(&mut self.incoming, cx),
            None => Pin::new(&mut self.incoming).poll_frame(cx),
        };
        match next {
            Poll::Ready(Some(Ok(frame))) => {
                self.last_chunk = Instant::now();
                if self.incoming.is_end_stream() {
                    self.give_back(cx);
                }
                // Trailers carry nothing that a client of this endpoint reads.
                Poll::Ready(Some(Ok(frame.into_data().unwrap_or_default())))
            }
            Poll::Ready(Some(Err(error))) => {
                self.link = None;
                let cause = words(&error);
                let replica = self.replica.name().clone();
                Poll::Ready(Some(Err(Failure::Truncated { replica, cause })))
            }
            Poll::Ready(None) => {
                self.give_back(cx);
                Poll::Ready(None)
            }
            Poll::Pending => self.poll_timer(cx),
        }
    }

    /// Whether every byte has been handed out.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.incoming.is_end_stream()
    }

    /// The length from the answer's head, where it had one.
    #[must_use]
    pub fn exact_len(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }

    /// The timer is moved only when it fires, so that a chunk costs no timer operation, and an answer that is all
    /// there costs none at all.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        if !std::mem::replace(&mut self.timing, true) {
            self.timer.as_mut().reset(self.last_chunk + self.idle);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let deadline = self.last_chunk + self.idle;
            if deadline <= Instant::now() {
                self.link = None;
                let replica = self.replica.name().clone();
                return Poll::Ready(Some(Err(Failure::IdleTimeout {
                    replica,
                    after: self.idle,
                })));
            }
            self.timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    fn give_back(&mut self, cx: &mut Context<'_>) {
        if let Some(mut link) = self.link.take()
            && link.poll_reusable(cx)
        {
            link.let_go();
            self.replica.pool().put(link);
        }
    }
}

/// An error with its causes, outermost first.
pub(super) fn words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
