//! The answer as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use chat_wire::reply::{ChatCompletionChunk, ChunkChoice, Delta};
use chat_wire::sse;
use chat_wire::usage::Usage;
use futures_util::{Stream, StreamExt};
use http_body::{Body, Frame};
use replica_core::answer_text::AnswerPart;
use tokio::time::{Instant, Sleep, sleep};

use super::logprobs::logprobs;
use super::{Answer, Timer, finish_word};
use crate::api::rescue;
use crate::engine::job::{JobEvent, TokenInfo};
use crate::failure::Failure;
use crate::metrics::Ending;

/// A stream that has been silent for so long sends a comment, so that nobody on the way takes it for dead during a long
/// prefill. Below the half minute after which common proxies give up.
pub(crate) const PING_AFTER: Duration = Duration::from_secs(15);

/// Pulls the engine's events and writes each as events of the wire. No task and no channel of its own: a client that
/// does not read stops the pulling, and a dropped body drops the events, which cancels the job.
///
/// Order on the wire: the role once the job is admitted, reasoning and then content as they come, the finish reason, usage where asked for,
/// `[DONE]`. A failure is one error event and the end, with no `[DONE]`: such an answer must not pass for whole.
pub(crate) struct StreamBody<S> {
    answer: Answer,
    timer: Timer,
    events: S,
    cached_tokens: u32,
    /// Written and not yet taken: at most three, at the end.
    ready: VecDeque<Bytes>,
    ended: bool,
    ping: Pin<Box<Sleep>>,
}

impl<S: Stream<Item = JobEvent> + Unpin> StreamBody<S> {
    pub(crate) fn new(answer: Answer, timer: Timer, events: S) -> StreamBody<S> {
        StreamBody {
            answer,
            timer,
            events,
            cached_tokens: 0,
            ready: VecDeque::new(),
            ended: false,
            ping: Box::pin(sleep(PING_AFTER)),
        }
    }

    fn take(&mut self, event: Option<JobEvent>) {
        match event {
            Some(JobEvent::Admitted { cached_tokens }) => {
                self.cached_tokens = cached_tokens;
                let role = Delta {
                    role: Some("assistant"),
                    content: Some(""),
                    ..Delta::default()
                };
                self.push(role, None, &[]);
            }
            Some(JobEvent::Delta { part, text, tokens }) => self.say(part, &text, &tokens),
            Some(JobEvent::Finished {
                reason,
                completion_tokens,
                reasoning_tokens,
            }) => {
                self.ended = true;
                self.timer.end(Ending::Finished(reason));
                self.push(Delta::default(), Some(finish_word(reason)), &[]);
                if self.answer.include_usage {
                    let cached = self.cached_tokens;
                    let usage = self
                        .answer
                        .usage(cached, completion_tokens, reasoning_tokens);
                    let chunk = self.chunk(Vec::new(), Some(usage));
                    self.ready.push_back(chunk);
                }
                self.ready.push_back(sse::DONE);
            }
            Some(JobEvent::Failed { message }) => self.fail(message),
            None => self
                .fail("it stopped before the answer had ended; send the request again".to_owned()),
        }
    }

    fn say(&mut self, part: AnswerPart, text: &str, tokens: &[TokenInfo]) {
        self.timer.tokens(tokens.len());
        let told = if self.answer.logprobs { tokens } else { &[] };
        // A token that completed no character says nothing, unless its probability was asked for.
        if text.is_empty() && told.is_empty() {
            return;
        }
        let mut delta = Delta::default();
        match part {
            AnswerPart::Reasoning => delta.reasoning_content = Some(text),
            AnswerPart::Content => delta.content = Some(text),
        }
        self.push(delta, None, told);
    }

    fn fail(&mut self, message: String) {
        self.ended = true;
        self.timer.end(Ending::Error);
        self.ready
            .push_back(rescue::event(&Failure::Engine(message)));
    }

    fn push(&mut self, delta: Delta<'_>, finish: Option<&'static str>, told: &[TokenInfo]) {
        let choice = ChunkChoice {
            index: 0,
            delta,
            logprobs: (!told.is_empty()).then(|| logprobs(told, &*self.answer.vocabulary)),
            finish_reason: finish,
        };
        let chunk = self.chunk(vec![choice], None);
        self.ready.push_back(chunk);
    }

    fn chunk(&self, choices: Vec<ChunkChoice<'_>>, usage: Option<Usage>) -> Bytes {
        let chunk = ChatCompletionChunk {
            id: &self.answer.id,
            object: ChatCompletionChunk::OBJECT,
            created: self.answer.created,
            model: &self.answer.model,
            system_fingerprint: None,
            choices,
            usage,
        };
        chunk.to_event()
    }
}

impl<S: Stream<Item = JobEvent> + Unpin> Body for StreamBody<S> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Ends: each turn takes an event off the engine's bounded channel, or returns.
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                let next = Instant::now() + PING_AFTER;
                self.ping.as_mut().reset(next);
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            match self.events.poll_next_unpin(cx) {
                Poll::Ready(event) => self.take(event),
                Poll::Pending => match self.ping.as_mut().poll(cx) {
                    Poll::Ready(()) => self.ready.push_back(sse::COMMENT_PING),
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended && self.ready.is_empty()
    }
}
