//! Keeps a silent stream alive: a comment now and then, which clients skip, while a replica works on a long prompt.
//! Proxies and clients that close idle connections see bytes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use chat_wire::sse::COMMENT_PING;
use tokio::time::{Instant, Sleep, sleep};

/// Between two signs of life. Below the 30 s and 60 s after which common proxies give up.
const PING_EVERY: Duration = Duration::from_secs(15);

/// The silence of one stream, from the last chunk on.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// Made at the first wait: a stream that never waits needs none.
    timer: Option<Pin<Box<Sleep>>>,
    /// The last chunk or comment; `None` until the first wait after one.
    since: Option<Instant>,
}

impl Silence {
    /// A chunk came.
    pub(super) fn ended(&mut self) {
        self.since = None;
    }

    /// Called when nothing is there to send: ready with a comment once the silence has lasted.
    pub(super) fn poll_ping(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep(PING_EVERY)));
        let since = *self.since.get_or_insert_with(Instant::now);
        // The timer is moved only when it fires, so that a chunk costs no timer operation.
        while timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let due = since + PING_EVERY;
            if due <= now {
                timer.as_mut().reset(now + PING_EVERY);
                self.since = Some(now);
                return Poll::Ready(COMMENT_PING);
            }
            timer.as_mut().reset(due);
        }
        Poll::Pending
    }
}
