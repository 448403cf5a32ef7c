//! Passes a stream on, whole events only, one read of the replica's connection per read of the client's: a slow
//! client slows its replica and fills no buffer here. A stream that breaks ends with an error event, never with
//! `[DONE]`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use chat_wire::chunk::{ChunkScan, Places};
use chat_wire::error::ErrorBody;
use chat_wire::reshape::Change;
use chat_wire::sse::{self, Frame, FrameCutter};
use chat_wire::tally::StreamTally;
use tokio::time::Instant;

use super::cut::Next;
use super::reasoning::Split;
use super::relay::is_event_stream;
use super::route::StreamPlan;
use super::silence::Silence;
use crate::failure::Failure;
use crate::layers::observe::Record;
use crate::metrics::Outcome;
use crate::state::replicas::Replica;
use crate::state::sent::Sent;
use crate::upstream::body::UpstreamBody;

/// Room made at once for changed events, in bytes: a few of the usual size.
const ROOM_BYTES: usize = 2048;

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
    places: Places,
    /// Splits reasoning off, where the model is known.
    split: Option<Box<Split>>,
    /// Room for events as they go out where they are changed.
    room: BytesMut,
    /// Choices that have told their finish reason.
    finished: u64,
    times: TokenTimes,
    silence: Silence,
    /// The thought was cut, and this is the replica's answer behind it.
    next: Option<Next>,
    /// What broke the stream.
    failure: Option<Failure>,
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
    /// This goes out in its place.
    Replace(Bytes),
    /// This goes out before it.
    After(Bytes),
    /// The replica's own error: it passes, and nothing after it, which would read like an answer.
    Last,
}

impl EventRelay {
    pub(super) fn new(
        upstream: UpstreamBody,
        sent: Sent,
        plan: StreamPlan,
        split: Option<Split>,
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
            places: Places::default(),
            split: split.map(Box::new),
            room: BytesMut::new(),
            finished: 0,
            times: TokenTimes::default(),
            silence: Silence::default(),
            next: None,
            failure: None,
        }
    }

    /// What broke the stream, where something did.
    pub(super) fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// The replica that answers.
    pub(super) fn replica(&self) -> &Replica {
        self.sent.replica()
    }

    /// The next whole events; `None` at the end, which may follow an error event.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(events) = self.outgoing.pop_front() {
                return Poll::Ready(Some(events));
            }
            if self.next.is_some() {
                if self.poll_cut(cx).is_pending() {
                    return self.silence.poll_ping(cx).map(Some);
                }
                continue;
            }
            let Some(upstream) = &mut self.upstream else {
                return Poll::Ready(None);
            };
            let Poll::Ready(next) = upstream.poll_chunk(cx) else {
                return self.silence.poll_ping(cx).map(Some);
            };
            match next {
                Some(Ok(chunk)) => {
                    self.take(&chunk);
                    // What is kept from the client is silence to it.
                    if !self.outgoing.is_empty() {
                        self.silence.ended();
                    }
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
        self.upstream.is_none() && self.next.is_none() && self.outgoing.is_empty()
    }

    /// Waits for what the replica says behind the cut.
    fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(next) = &mut self.next else {
            return Poll::Ready(());
        };
        let answer = std::task::ready!(next.poll(cx));
        self.next = None;
        match answer {
            Ok((parts, body)) if parts.status.is_success() && is_event_stream(&parts.headers) => {
                self.upstream = Some(body);
            }
            Ok((parts, _)) => {
                let replica = self.sent.replica().name().clone();
                let status = parts.status;
                let cause = format!(
                    "it does not go on behind the end of its budget of thinking: status {status}"
                );
                self.fail(&Failure::Truncated { replica, cause });
            }
            Err(failure) => self.fail(&failure),
        }
        Poll::Ready(())
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
            let last = matches!(verdict, Verdict::Last);
            match verdict {
                Verdict::Withhold => {
                    self.queue(chunk.slice(run..at));
                    run = end;
                }
                Verdict::Replace(event) => {
                    self.queue(chunk.slice(run..at));
                    self.queue(event);
                    run = end;
                }
                Verdict::After(event) => {
                    self.queue(chunk.slice(run..at));
                    self.queue(event);
                    run = at;
                }
                Verdict::Pass | Verdict::Last => {}
            }
            if began_earlier && run < end {
                self.queue(frame.raw);
                run = end;
            }
            at = end;
            self.next = self.split.as_deref_mut().and_then(Split::cut);
            if last || self.next.is_some() {
                self.upstream = None;
                break;
            }
        }
        self.queue(chunk.slice(run..at));
        self.held += chunk.len() - at;
        if self.next.is_some() {
            // What came behind the cut is another answer than the one that goes on.
            (self.cutter, self.held) = (FrameCutter::new(), 0);
        }
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
        let Ok(Some(mut chunk)) = self.tally.absorb_placed(data, &mut self.places) else {
            if self.is_complete() {
                self.record.ended(Outcome::Ok);
            }
            return self.unread();
        };
        if chunk.error.is_some() {
            self.sent.replica().metrics().stream_errors.inc();
            self.record.ended(Outcome::UpstreamError);
            return Verdict::Last;
        }
        self.finished = self.finished.saturating_add(u64::from(chunk.finished));
        let (verdict, content) = self.reshape(frame, data, &mut chunk);
        tokens.any |= chunk.has_tokens();
        tokens.content |= content;
        if self.plan.withhold_usage && chunk.is_usage_only() {
            return Verdict::Withhold;
        }
        verdict
    }

    /// The event as the client gets it, and whether it has something that the client waits for: a tool call is, too.
    fn reshape(&mut self, frame: &Frame, data: &Bytes, chunk: &mut ChunkScan) -> (Verdict, bool) {
        let Some(Split { reshaper, .. }) = self.split.as_deref_mut() else {
            return (Verdict::Pass, chunk.content || chunk.tool_calls);
        };
        let reshaped = reshaper.event(data, chunk, &self.places);
        self.tally.usage = chunk.usage.or(self.tally.usage);
        let verdict = match reshaped.change {
            Change::Same => Verdict::Pass,
            Change::Nothing => Verdict::Withhold,
            Change::Spliced => {
                self.room.reserve(frame.raw.len() + ROOM_BYTES);
                // Data on one line lies in the event as it came; what is around it stays.
                let at = (data.as_ptr() as usize).wrapping_sub(frame.raw.as_ptr() as usize);
                let after = at.checked_add(data.len());
                let after = after.and_then(|after| frame.raw.get(after..));
                match frame.raw.get(..at).zip(after) {
                    Some((before, after)) => {
                        self.room.extend_from_slice(before);
                        reshaper.write(data, &mut self.room);
                        self.room.extend_from_slice(after);
                        Verdict::Replace(self.room.split().freeze())
                    }
                    None => {
                        reshaper.write(data, &mut self.room);
                        Verdict::Replace(sse::encode(&self.room.split()))
                    }
                }
            }
        };
        (verdict, reshaped.content)
    }

    /// `[DONE]`, after what is held back; or data that is no JSON object, which may hold anything.
    fn unread(&mut self) -> Verdict {
        if self.tally.done {
            return self.flush().map_or(Verdict::Pass, Verdict::After);
        }
        match &self.split {
            Some(split) if split.reshaper.hides() => Verdict::Withhold,
            _ => Verdict::Pass,
        }
    }

    /// What is held back of choices that are still open, as an event. Nothing is held back after it.
    fn flush(&mut self) -> Option<Bytes> {
        let data = self.split.as_mut()?.reshaper.flush()?;
        Some(sse::encode(&data))
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
        if let Some(event) = self.flush() {
            self.queue(event);
        }
        self.failure = Some(failure.clone());
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

impl Drop for EventRelay {
    /// The usage counts however the stream ended: the replica has done the work.
    fn drop(&mut self) {
        let usage = self.tally.usage;
        if let Some(split) = &self.split {
            split.note(self.sent.replica(), usage.as_ref());
        }
        if let Some(usage) = usage {
            self.sent.usage(usage);
        }
    }
}
