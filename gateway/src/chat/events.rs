//! Passes a stream on, whole events only, one read of the replica's connection per read of the client's: a slow
//! client slows its replica and fills no buffer here. A stream that breaks ends with an error event, never with
//! `[DONE]`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use chat_wire::chunk::ChunkScan;
use chat_wire::error::ErrorBody;
use chat_wire::sse::{Frame, FrameCutter};
use chat_wire::tally::StreamTally;
use tokio::time::Instant;

use super::route::StreamPlan;
use super::silence::Silence;
use crate::failure::Failure;
use crate::layers::observe::Record;
use crate::metrics::Outcome;
use crate::state::sent::Sent;
use crate::upstream::body::UpstreamBody;

/// A stream on its way.
#[derive(Debug)]
pub struct EventRelay {
    /// `None` once nothing more is to be read.
    upstream: Option<UpstreamBody>,
    sent: Sent,
    record: Arc<Record>,
    plan: StreamPlan,
    cutter: FrameCutter,
    /// Bytes of an incomplete event that the cutter holds.
    held: usize,
    /// Whole events that may go out: what one chunk of the replica's gave.
    outgoing: VecDeque<Bytes>,
    tally: StreamTally,
    /// Choices that have told their finish reason.
    finished: u64,
    times: TokenTimes,
    silence: Silence,
}

/// When tokens came.
#[derive(Debug, Default)]
struct TokenTimes {
    last: Option<Instant>,
    content: bool,
}

/// What one event, or all of one chunk, carries for the clock.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    any: bool,
    content: bool,
}

/// What becomes of an event.
enum Verdict {
    Pass,
    Withhold,
    /// The replica's own error: it passes, and nothing after it, which would read like an answer.
    Last,
}

impl EventRelay {
    pub(super) fn new(
        upstream: UpstreamBody,
        sent: Sent,
        plan: StreamPlan,
        record: Arc<Record>,
    ) -> Self {
        Self {
            upstream: Some(upstream),
            sent,
            record,
            plan,
            cutter: FrameCutter::new(),
            held: 0,
            outgoing: VecDeque::new(),
            tally: StreamTally::default(),
            finished: 0,
            times: TokenTimes::default(),
            silence: Silence::default(),
        }
    }

    /// The next whole events; `None` at the end, which may follow an error event.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(events) = self.outgoing.pop_front() {
                return Poll::Ready(Some(events));
            }
            let Some(upstream) = &mut self.upstream else {
                return Poll::Ready(None);
            };
            let Poll::Ready(next) = upstream.poll_chunk(cx) else {
                return self.silence.poll_ping(cx).map(Some);
            };
            match next {
                Some(Ok(chunk)) => {
                    self.silence.ended();
                    self.take(&chunk);
                }
                // What breaks after the last word is no loss to the client.
                Some(Err(failure)) if !self.is_complete() => self.fail(&failure),
                None if !self.is_complete() => {
                    let replica = self.sent.replica().name().clone();
                    let cause = "it ended without a finish reason".to_owned();
                    self.fail(&Failure::Truncated { replica, cause });
                }
                _ => {
                    self.record.ended(Outcome::Ok);
                    self.upstream = None;
                }
            }
        }
    }

    /// Whether nothing is left to say.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.upstream.is_none() && self.outgoing.is_empty()
    }

    /// Cuts a chunk into events and queues those that pass. Neighbours go out as one piece of the chunk, without
    /// a copy; only an event that began in an earlier chunk is a piece of its own.
    fn take(&mut self, chunk: &Bytes) {
        self.cutter.push(chunk.clone());
        let mut tokens = Tokens::default();
        // The run of passing events that is not queued yet, and the end of the last event: offsets in `chunk`.
        let (mut run, mut at) = (0, 0);
        loop {
            let frame = match self.cutter.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    self.queue(chunk.slice(run..at));
                    let replica = self.sent.replica().name().clone();
                    return self.fail(&Failure::EventTooLarge {
                        replica,
                        cause: error.to_string(),
                    });
                }
            };
            let end = at + frame.raw.len() - self.held;
            let began_earlier = std::mem::take(&mut self.held) > 0;
            let verdict = self.judge(&frame, &mut tokens);
            match verdict {
                Verdict::Withhold => {
                    self.queue(chunk.slice(run..at));
                    run = end;
                }
                Verdict::Pass | Verdict::Last if began_earlier => {
                    self.queue(frame.raw);
                    run = end;
                }
                Verdict::Pass | Verdict::Last => {}
            }
            at = end;
            if matches!(verdict, Verdict::Last) {
                self.upstream = None;
                break;
            }
        }
        self.queue(chunk.slice(run..at));
        self.held += chunk.len() - at;
        self.time(tokens);
    }

    fn queue(&mut self, events: Bytes) {
        if !events.is_empty() {
            self.outgoing.push_back(events);
        }
    }

    fn judge(&mut self, frame: &Frame, tokens: &mut Tokens) -> Verdict {
        let Some(data) = &frame.data else {
            return Verdict::Pass;
        };
        // Data that is no JSON object is not the gateway's to judge.
        let Ok(Some(chunk)) = self.tally.absorb(data) else {
            if self.is_complete() {
                self.record.ended(Outcome::Ok);
            }
            return Verdict::Pass;
        };
        if chunk.error.is_some() {
            self.sent.replica().metrics().stream_errors.inc();
            self.record.ended(Outcome::UpstreamError);
            return Verdict::Last;
        }
        self.finished = self.finished.saturating_add(u64::from(chunk.finished));
        tokens.see(&chunk);
        if self.plan.withhold_usage && chunk.is_usage_only() {
            return Verdict::Withhold;
        }
        Verdict::Pass
    }

    fn time(&mut self, tokens: Tokens) {
        if !tokens.any {
            return;
        }
        self.sent.first_token();
        let now = Instant::now();
        let metrics = self.sent.replica().metrics();
        let seconds = |since: Instant| now.duration_since(since).as_secs_f64();
        match self.times.last.replace(now) {
            None => metrics.ttft.observe(seconds(self.record.started())),
            Some(last) => metrics.inter_chunk.observe(seconds(last)),
        }
        if tokens.content && !std::mem::replace(&mut self.times.content, true) {
            metrics
                .first_content
                .observe(seconds(self.record.started()));
        }
    }

    fn is_complete(&self) -> bool {
        (self.tally.done || self.finished >= self.plan.answers) && !self.tally.error
    }

    /// Queues the event that tells the client what happened. There is nothing after it.
    fn fail(&mut self, failure: &Failure) {
        let row = failure.row();
        self.record.ended(row.outcome);
        self.sent.replica().metrics().truncated.inc();
        self.upstream = None;
        let message = failure.to_string();
        tracing::warn!(
            replica = &**self.sent.replica().name(),
            message,
            "stream cut"
        );
        let body = ErrorBody {
            message: &message,
            kind: row.kind,
            param: None,
            code: Some(row.code),
        };
        self.queue(body.to_event());
    }
}

impl Tokens {
    fn see(&mut self, chunk: &ChunkScan) {
        self.any |= chunk.has_tokens();
        // A tool call is what the client waits for too.
        self.content |= chunk.content || chunk.tool_calls;
    }
}

impl Drop for EventRelay {
    /// The usage counts however the stream ended: the replica has done the work.
    fn drop(&mut self) {
        if let Some(usage) = self.tally.usage {
            self.sent.usage(usage);
        }
    }
}
