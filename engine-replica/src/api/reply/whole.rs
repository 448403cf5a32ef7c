//! The answer in one piece.

use std::pin::pin;

use bytes::Bytes;
use chat_wire::reply::{ChatCompletion, Choice, Message};
use futures_util::{Stream, StreamExt};
use replica_core::answer_text::AnswerPart;

use super::logprobs::logprobs;
use super::{Answer, Timer, finish_word};
use crate::engine::job::JobEvent;
use crate::failure::Failure;
use crate::metrics::Ending;

/// Collects the events to their end. Dropping the future drops the events, which cancels the job.
///
/// # Errors
/// `Engine` when the job failed; what had been generated is lost with it.
pub(crate) async fn whole(
    answer: &Answer,
    mut timer: Timer,
    events: impl Stream<Item = JobEvent>,
) -> Result<Bytes, Failure> {
    let mut events = pin!(events);
    // Bounded by `max_tokens`, which is bounded by the context.
    let (mut content, mut reasoning) = (String::new(), String::new());
    let mut reasoned = false;
    let mut told = Vec::new();
    let mut cached = 0;
    while let Some(event) = events.next().await {
        match event {
            JobEvent::Admitted { cached_tokens } => cached = cached_tokens,
            JobEvent::Delta { part, text, tokens } => {
                timer.tokens(tokens.len());
                match part {
                    AnswerPart::Reasoning => {
                        reasoned = true;
                        reasoning.push_str(&text);
                    }
                    AnswerPart::Content => content.push_str(&text),
                }
                if answer.logprobs {
                    told.extend(tokens);
                }
            }
            JobEvent::Finished {
                reason,
                completion_tokens,
                reasoning_tokens,
            } => {
                timer.end(Ending::Finished(reason));
                let completion = ChatCompletion {
                    id: &answer.id,
                    object: ChatCompletion::OBJECT,
                    created: answer.created,
                    model: &answer.model,
                    system_fingerprint: None,
                    choices: vec![Choice {
                        index: 0,
                        message: Message {
                            role: "assistant",
                            // An answer that ends within its reasoning, or right after it, has none.
                            content: (!content.is_empty() || !reasoned).then_some(&content),
                            reasoning_content: (!reasoning.is_empty()).then_some(&reasoning),
                            tool_calls: Vec::new(),
                        },
                        logprobs: answer
                            .logprobs
                            .then(|| logprobs(&told, &*answer.vocabulary)),
                        finish_reason: finish_word(reason),
                    }],
                    usage: answer.usage(cached, completion_tokens, reasoning_tokens),
                };
                return Ok(completion.to_json());
            }
            JobEvent::Failed { message } => {
                timer.end(Ending::Error);
                return Err(Failure::Engine(message));
            }
        }
    }
    timer.end(Ending::Error);
    Err(Failure::Engine(
        "it stopped before the answer had ended; send the request again".to_owned(),
    ))
}
