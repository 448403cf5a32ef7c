//! Passes a stream on, whole events only, one read of the replica's connection per read of the client's: a slow
//! client slows its replica and fills no buffer here. A stream that breaks ends with an error event, never with
//! `[DONE]`.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use chat_wire::chunk::{ChunkScan, UsageScan};
use chat_wire::error::ErrorBody;
use chat_wire::sse::{Frame, FrameCutter};
use chat_wire::tally::StreamTally;
use tokio::time::Instant;

use super::route::StreamPlan;
use crate::failure::Failure;
use crate::layers::observe::Record;
use crate::metrics::Outcome;
use crate::state::replicas::{InFlight, Replica};
use crate::upstream::body::UpstreamBody;

/// A stream on its way.
#[derive(Debug)]
pub struct EventRelay {
    /// `None` once nothing more is to be read.
    upstream: Option<UpstreamBody>,
    in_flight: InFlight,
    record: Arc<Record>,
    plan: StreamPlan,
    cutter: FrameCutter,
    tally: StreamTally,
    /// Choices that have told their finish reason.
    finished: u64,
    times: TokenTimes,
}

/// When tokens came.
#[derive(Debug, Default)]
struct TokenTimes {
    last: Option<Instant>,
    content: bool,
}

impl EventRelay {
    pub(super) fn new(
        upstream: UpstreamBody,
        in_flight: InFlight,
        plan: StreamPlan,
        record: Arc<Record>,
    ) -> Self {
        Self {
            upstream: Some(upstream),
            in_flight,
            record,
            plan,
            cutter: FrameCutter::new(),
            tally: StreamTally::default(),
            finished: 0,
            times: TokenTimes::default(),
        }
    }

    /// The next whole event; `None` at the end, which may follow an error event.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let Some(upstream) = &mut self.upstream else {
                return Poll::Ready(None);
            };
            match self.cutter.next_frame() {
                Ok(Some(frame)) => match self.pass(frame) {
                    Some(event) => return Poll::Ready(Some(event)),
                    None => continue,
                },
                Ok(None) => {}
                Err(error) => {
                    let replica = self.in_flight.replica().name().clone();
                    let cause = error.to_string();
                    let failure = Failure::EventTooLarge { replica, cause };
                    return Poll::Ready(Some(self.fail(&failure)));
                }
            }
            match ready!(upstream.poll_chunk(cx)) {
                Some(Ok(chunk)) => self.cutter.push(chunk),
                // What breaks after the last word is no loss to the client.
                Some(Err(failure)) if !self.is_complete() => {
                    return Poll::Ready(Some(self.fail(&failure)));
                }
                None if !self.is_complete() => {
                    let replica = self.in_flight.replica().name().clone();
                    let cause = "it ended without a finish reason".to_owned();
                    return Poll::Ready(Some(self.fail(&Failure::Truncated { replica, cause })));
                }
                _ => {
                    self.complete();
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// Whether nothing is left to say.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.upstream.is_none()
    }

    /// Looks at an event; gives it back unless the client must not see it.
    fn pass(&mut self, frame: Frame) -> Option<Bytes> {
        let Some(data) = &frame.data else {
            return Some(frame.raw);
        };
        // Data that is no JSON object is not the gateway's to judge.
        let Ok(Some(chunk)) = self.tally.absorb(data) else {
            if self.tally.done {
                self.record.ended(Outcome::Ok);
            }
            return Some(frame.raw);
        };
        if chunk.error.is_some() {
            return Some(self.pass_error(frame.raw));
        }
        self.finished = self.finished.saturating_add(u64::from(chunk.finished));
        self.time(&chunk);
        let withheld = self.plan.withhold_usage && chunk.is_usage_only();
        (!withheld).then_some(frame.raw)
    }

    /// The replica's own error goes to the client as it is, and nothing after it: it would read like an answer.
    fn pass_error(&mut self, event: Bytes) -> Bytes {
        self.in_flight.replica().metrics().stream_errors.inc();
        self.record.ended(Outcome::UpstreamError);
        self.upstream = None;
        event
    }

    fn time(&mut self, chunk: &ChunkScan) {
        if !chunk.has_tokens() {
            return;
        }
        let now = Instant::now();
        let metrics = self.in_flight.replica().metrics();
        let seconds = |since: Instant| now.duration_since(since).as_secs_f64();
        match self.times.last.replace(now) {
            None => metrics.ttft.observe(seconds(self.record.started())),
            Some(last) => metrics.inter_chunk.observe(seconds(last)),
        }
        // A tool call is what the client waits for too.
        if (chunk.content || chunk.tool_calls) && !std::mem::replace(&mut self.times.content, true)
        {
            metrics
                .first_content
                .observe(seconds(self.record.started()));
        }
    }

    fn is_complete(&self) -> bool {
        (self.tally.done || self.finished >= self.plan.answers) && !self.tally.error
    }

    fn complete(&mut self) {
        self.record.ended(Outcome::Ok);
        self.upstream = None;
    }

    /// The event that tells the client what happened. There is nothing after it.
    fn fail(&mut self, failure: &Failure) -> Bytes {
        let row = failure.row();
        self.record.ended(row.outcome);
        self.in_flight.replica().metrics().truncated.inc();
        self.upstream = None;
        let message = failure.to_string();
        tracing::warn!(
            replica = &**self.in_flight.replica().name(),
            message,
            "stream cut"
        );
        ErrorBody {
            message: &message,
            kind: row.kind,
            param: None,
            code: Some(row.code),
        }
        .to_event()
    }
}

impl Drop for EventRelay {
    /// The usage counts however the stream ended: the replica has done the work.
    fn drop(&mut self) {
        if let Some(usage) = self.tally.usage {
            count_usage(self.in_flight.replica(), usage);
        }
    }
}

/// Adds a reply's usage to its replica's series.
pub(super) fn count_usage(replica: &Replica, usage: UsageScan) {
    let metrics = replica.metrics();
    metrics.prompt_tokens.inc_by(usage.prompt_tokens);
    metrics
        .cached_tokens
        .inc_by(usage.cached_tokens.unwrap_or(0));
    metrics.completion_tokens.inc_by(usage.completion_tokens);
    metrics
        .reasoning_tokens
        .inc_by(usage.reasoning_tokens.unwrap_or(0));
}
