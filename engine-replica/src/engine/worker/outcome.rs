//! What a step brings: tokens to clients when it succeeded, a failure to each of its jobs when it did not.

use std::any::Any;
use std::sync::atomic::Ordering;

use replica_core::plan::Plan;
use replica_core::sequence::SequenceId;

use super::Worker;
use crate::engine::answer::Answer;
use crate::engine::job::{FinishReason, JobEvent};
use crate::engine::step::StepError;

/// What a step brought for one sequence, sent once the step is counted.
enum Outcome {
    Delta(JobEvent),
    Finished(Box<Answer>, JobEvent, FinishReason),
    Failed(Box<Answer>, String),
}

impl Worker {
    /// Turns a successful step into tokens, counts them, and only then tells the clients.
    pub(super) fn deliver(&mut self, plan: &Plan) {
        self.scheduler.complete(plan);
        self.counters.steps += 1;
        self.counters.computed_tokens += plan.tokens() as u64;
        let logits = std::mem::take(&mut self.logits);
        let outcomes: Vec<_> = plan
            .slices
            .iter()
            .filter(|slice| slice.wants_logits)
            .zip(logits.chunks_exact(self.model.vocab()))
            .filter_map(|(slice, row)| Some((slice.id, self.next_token(slice.id, row)?)))
            .collect();
        self.logits = logits;
        self.publish();
        for (id, outcome) in outcomes {
            match outcome {
                Outcome::Delta(delta) => {
                    if let Some(answer) = self.answers.get_mut(&id) {
                        answer.outbox.send_delta(delta);
                    }
                }
                Outcome::Finished(mut answer, delta, reason) => {
                    answer.outbox.send_delta(delta);
                    answer.finish(reason);
                }
                Outcome::Failed(answer, message) => {
                    answer.outbox.end(JobEvent::Failed { message });
                }
            }
        }
    }

    /// Chooses one sequence's next token, and ends the sequence if that was its last.
    fn next_token(&mut self, id: SequenceId, logits: &[f32]) -> Option<Outcome> {
        let answer = self.answers.get_mut(&id)?;
        let sequence = self.scheduler.sequence(id)?;
        let mut choice = self
            .sampler
            .choose(logits, &answer.sampling, answer.history(sequence));
        if choice.as_ref().is_ok_and(|choice| answer.prolongs(choice)) {
            choice = self
                .sampler
                .choose(logits, &answer.sampling, answer.history(sequence));
        }
        let Ok(choice) = choice else {
            self.counters.failed += 1;
            let message = "the model found no next token: all its probabilities are zero, not numbers, or \
                           of stop tokens that `min_tokens` holds back; try other sampling settings";
            return Some(Outcome::Failed(self.end(id)?, message.to_owned()));
        };
        self.counters.generated_tokens += 1;
        self.scheduler.push_token(id, choice.token);
        let (delta, finish) = answer.take(choice, self.vocabulary.as_ref());
        self.counters.budgets += answer.take_budget_counts();
        let Some(reason) = finish else {
            return Some(Outcome::Delta(delta));
        };
        self.counters.finished += 1;
        Some(Outcome::Finished(self.end(id)?, delta, reason))
    }

    /// Frees a sequence's blocks and returns what is left to tell its client.
    fn end(&mut self, id: SequenceId) -> Option<Box<Answer>> {
        self.scheduler.remove(id);
        self.answers.remove(&id).map(Box::new)
    }

    /// Fails the jobs of one step. Its blocks were not published, so nothing wrong can be reused.
    pub(super) fn fail_step(&mut self, plan: &Plan, error: &StepError) {
        tracing::warn!(%error, jobs = plan.slices.len(), "a model step failed");
        let ids: Vec<_> = plan.slices.iter().map(|slice| slice.id).collect();
        self.fail(
            &ids,
            &format!("the model could not compute this request: {error}; try again"),
        );
    }

    /// Fails every job after a panic in the model, whose memory nobody can vouch for any more.
    pub(super) fn give_up(&mut self, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no message");
        tracing::error!(panic = text, "the model panicked; restart this replica");
        self.shared.healthy.store(false, Ordering::SeqCst);
        let ids: Vec<_> = self.answers.keys().copied().collect();
        self.fail(
            &ids,
            "the engine has stopped after an internal error; send the request again",
        );
    }

    fn fail(&mut self, ids: &[SequenceId], message: &str) {
        let failed: Vec<_> = ids.iter().filter_map(|&id| self.end(id)).collect();
        self.counters.failed += failed.len() as u64;
        self.publish();
        for answer in failed {
            answer.outbox.end(JobEvent::Failed {
                message: message.to_owned(),
            });
        }
    }
}
