//! The answer to one job as it grows: which tokens may come, what text they give, when it ends.

use replica_core::answer_text::{AnswerDelta, AnswerPart, AnswerText};
use replica_core::budget::{BudgetCounts, ThinkGuard};
use replica_core::sampler::{Choice, History, SamplingParams};
use replica_core::sequence::Sequence;
use replica_core::text_stream::TokenText;

use super::job::{FinishReason, Job, JobEvent, TokenInfo};
use super::outbox::Outbox;
use super::shared::QueueSlot;

/// Everything about a job that the scheduler need not know.
pub(super) struct Answer {
    pub(super) outbox: Outbox,
    /// Held until the first admission.
    pub(super) slot: Option<QueueSlot>,
    pub(super) sampling: SamplingParams,
    text: AnswerText,
    guard: Option<ThinkGuard>,
    stop_tokens: Vec<u32>,
    max_tokens: u32,
    min_tokens: u32,
    logprobs: Option<u8>,
    generated: u32,
}

impl Answer {
    /// `job` without its prompt; `context_left` is how many tokens may follow it.
    pub(super) fn new(job: Job, outbox: Outbox, slot: QueueSlot, context_left: usize) -> Self {
        let guard = job.thinking.zip(job.budget);
        Self {
            outbox,
            slot: Some(slot),
            sampling: job.sampling,
            text: AnswerText::new(job.thinking, job.stop_strings),
            guard: guard.map(|(thinking, budget)| ThinkGuard::new(budget, thinking)),
            stop_tokens: job.stop_tokens,
            max_tokens: job
                .max_tokens
                .min(u32::try_from(context_left).unwrap_or(u32::MAX)),
            min_tokens: job.min_tokens,
            logprobs: job.logprobs,
            generated: 0,
        }
    }

    /// What the sampler should know for the next token.
    pub(super) fn history<'a>(&'a self, sequence: &'a Sequence) -> History<'a> {
        let banned = if self.generated < self.min_tokens {
            self.stop_tokens.as_slice()
        } else {
            &[]
        };
        History {
            prompt: sequence.prompt(),
            output: sequence.output(),
            banned,
            forced: self.guard.as_ref().and_then(ThinkGuard::forced),
            logprobs: self.logprobs,
        }
    }

    /// Whether `choice` would end the thinking too early, so that another must be made.
    pub(super) fn prolongs(&mut self, choice: &Choice) -> bool {
        let guard = self.guard.as_mut();
        guard.is_some_and(|guard| guard.prolongs(choice.token))
    }

    /// What has come of the budget since this was asked last.
    pub(super) fn take_budget_counts(&mut self) -> BudgetCounts {
        let guard = self.guard.as_mut();
        guard.map_or_else(BudgetCounts::default, ThinkGuard::take_counts)
    }

    /// The text that a token adds.
    fn say(&mut self, token: u32, vocabulary: &dyn TokenText) -> AnswerDelta {
        let is_closing = self.guard.as_ref().is_some_and(ThinkGuard::is_closing);
        if let Some(guard) = &mut self.guard {
            guard.push(token, vocabulary.bytes(token));
        }
        if is_closing {
            self.text.push_closing(token, vocabulary)
        } else {
            self.text.push(token, vocabulary)
        }
    }

    /// Takes the next token; returns its delta and, if it is the last one, why. A stop token gives no text.
    pub(super) fn take(
        &mut self,
        choice: Choice,
        vocabulary: &dyn TokenText,
    ) -> (JobEvent, Option<FinishReason>) {
        self.generated += 1;
        let is_stop_token = self.stop_tokens.contains(&choice.token);
        let (mut part, mut text) = (AnswerPart::Content, String::new());
        let mut finish = is_stop_token.then_some(FinishReason::Stop);
        if !is_stop_token {
            let delta = self.say(choice.token, vocabulary);
            (part, text) = (delta.part, delta.text);
            finish = if delta.stopped {
                Some(FinishReason::Stop)
            } else {
                (self.generated >= self.max_tokens).then_some(FinishReason::Length)
            };
        }
        if finish.is_some() {
            let rest = self.text.finish();
            // What was held back is of the same part; a stop token says nothing itself and takes the part that it ends.
            if is_stop_token || !rest.text.is_empty() {
                part = rest.part;
            }
            text += &rest.text;
        }
        let Choice {
            token: id,
            logprob,
            top,
        } = choice;
        (
            JobEvent::Delta {
                part,
                text,
                tokens: vec![TokenInfo { id, logprob, top }],
            },
            finish,
        )
    }

    /// The last event.
    pub(super) fn finish(self, reason: FinishReason) {
        let (completion_tokens, reasoning_tokens) = (self.generated, self.text.reasoning_tokens());
        self.outbox.end(JobEvent::Finished {
            reason,
            completion_tokens,
            reasoning_tokens,
        });
    }
}
