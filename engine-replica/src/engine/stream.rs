//! The events of one job, as its client reads them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::mpsc;

use super::handle::EngineHandle;
use super::job::JobEvent;

/// Deltas that may wait for a slow client; past this its sequence pauses and the others go on.
/// 32 deltas are about a second of one stream on a CPU.
pub const STREAM_DELTAS_MAX: usize = 32;

/// Places of a stream's channel: the deltas, one for `Admitted` and one for the ending, which the engine reserves
/// at the start so that they never wait.
pub(super) const STREAM_EVENTS_MAX: usize = STREAM_DELTAS_MAX + 2;

/// Receives `Admitted`, then `Delta`s, then exactly one `Finished` or `Failed`, then nothing. An engine that dies
/// without a word is reported as `Failed` too. Dropping the stream cancels its job before the next step.
pub struct JobStream {
    pub(super) events: mpsc::Receiver<JobEvent>,
    pub(super) paused: Arc<AtomicBool>,
    pub(super) engine: EngineHandle,
    pub(super) ended: bool,
}

impl JobStream {
    /// The next event; `None` after the ending.
    pub async fn recv(&mut self) -> Option<JobEvent> {
        std::future::poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// The next event for a caller that is not async. Must not be called on an async runtime's thread.
    pub fn blocking_recv(&mut self) -> Option<JobEvent> {
        if self.ended {
            return None;
        }
        let event = self.events.blocking_recv();
        Some(self.note(event))
    }

    /// As `recv`, for a hand-written future.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<JobEvent>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.events
            .poll_recv(cx)
            .map(|event| Some(self.note(event)))
    }

    /// Wakes an engine that waited for room, and turns silence into a failure.
    fn note(&mut self, event: Option<JobEvent>) -> JobEvent {
        if self.paused.swap(false, Ordering::SeqCst) {
            self.engine.wake();
        }
        let event = event.unwrap_or_else(|| JobEvent::Failed {
            message: "the engine stopped before it finished this request; send it again".to_owned(),
        });
        self.ended = matches!(event, JobEvent::Finished { .. } | JobEvent::Failed { .. });
        event
    }
}

impl Stream for JobStream {
    type Item = JobEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<JobEvent>> {
        self.poll_recv(cx)
    }
}

impl Drop for JobStream {
    fn drop(&mut self) {
        // Closed first, so that the engine which this wakes sees it.
        self.events.close();
        if !self.ended {
            self.engine.wake();
        }
    }
}
