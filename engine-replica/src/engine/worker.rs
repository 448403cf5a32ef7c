//! What the engine thread does, step by step.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use replica_core::block_key::KeyMaker;
use replica_core::lease::KvCache;
use replica_core::plan::{Plan, PlanLimits, Scheduler};
use replica_core::sampler::Sampler;
use replica_core::sequence::{Admission, SequenceId};
use replica_core::text_stream::TokenText;

use super::answer::Answer;
use super::config::EngineConfig;
use super::job::{FinishReason, JobEvent};
use super::outbox::Outbox;
use super::shared::{Command, Shared, Submission};
use super::stats::EngineStats;
use super::step::{StepBatch, StepError, StepModel, StepSequence};

/// The model, the schedule and the answers; lives on the engine thread alone.
pub(super) struct Worker {
    model: Box<dyn StepModel>,
    vocabulary: Arc<dyn TokenText>,
    commands: Receiver<Command>,
    shared: Arc<Shared>,
    scheduler: Scheduler,
    /// One for each sequence of `scheduler`.
    answers: BTreeMap<SequenceId, Answer>,
    id_next: SequenceId,
    sampler: Sampler,
    counters: EngineStats,
    /// `(sequences that want them, vocab)`, kept for its memory.
    logits: Vec<f32>,
}

/// What a step brought for one sequence, sent once the step is counted.
enum Outcome {
    Delta(JobEvent),
    Finished(Box<Answer>, JobEvent, FinishReason),
    Failed(Box<Answer>, String),
}

impl Worker {
    pub(super) fn new(
        model: Box<dyn StepModel>,
        config: &EngineConfig,
        vocabulary: Arc<dyn TokenText>,
        commands: Receiver<Command>,
        shared: Arc<Shared>,
    ) -> Self {
        let maker = KeyMaker::new(&config.model_identity);
        let kv = KvCache::new(model.kv_blocks(), maker, config.prefix_cache);
        let limits = PlanLimits {
            running_max: config.max_running,
            step_tokens: config.step_tokens,
        };
        Self {
            model,
            vocabulary,
            commands,
            shared,
            scheduler: Scheduler::new(limits, kv),
            answers: BTreeMap::new(),
            id_next: 0,
            sampler: Sampler::default(),
            counters: EngineStats::default(),
            logits: Vec::new(),
        }
    }

    /// Steps for as long as there is something to do, sleeps on the queue when there is not, and returns when it is
    /// drained, when nobody can ask for anything any more, or when the model has panicked.
    pub(super) fn run(mut self) {
        let mut idle = true;
        while self.take_commands(idle) {
            self.drop_cancelled();
            if self.shared.reset_wanted.swap(false, Ordering::SeqCst) {
                self.scheduler.reset_prefix_cache();
            }
            let answers = &mut self.answers;
            let plan = self.scheduler.plan(|id| {
                answers
                    .get_mut(&id)
                    .is_some_and(|answer| answer.outbox.is_ready())
            });
            self.announce(&plan.admitted);
            idle = plan.slices.is_empty();
            if idle {
                continue;
            }
            match catch_unwind(AssertUnwindSafe(|| self.compute(&plan))) {
                Ok(Ok(())) => self.deliver(&plan),
                Ok(Err(error)) => self.fail_step(&plan, &error),
                Err(panic) => return self.give_up(panic.as_ref()),
            }
        }
    }

    /// Takes what has come; when `idle`, waits for something first. False: the thread should end.
    fn take_commands(&mut self, mut idle: bool) -> bool {
        loop {
            let done = self.answers.is_empty() && self.shared.draining.load(Ordering::SeqCst);
            let command = if idle && !done {
                self.commands.recv().ok()
            } else {
                self.commands.try_recv().ok()
            };
            match command {
                Some(Command::Submit(submission)) => self.accept(*submission),
                Some(Command::Wake) => self.shared.wake_pending.store(false, Ordering::SeqCst),
                None => return !idle,
            }
            idle = false;
        }
    }

    fn accept(&mut self, submission: Submission) {
        let Submission {
            mut job,
            events,
            paused,
            slot,
        } = submission;
        let id = self.id_next;
        self.id_next += 1;
        let prompt = std::mem::take(&mut job.prompt);
        let salt = job.cache_salt.take().map(Arc::from);
        let context_left = self.shared.limits.context_max - prompt.len();
        let answer = Answer::new(job, Outbox::new(events, paused), slot, context_left);
        self.scheduler.submit(id, prompt, salt);
        self.answers.insert(id, answer);
    }

    /// Frees what belongs to clients that have gone away.
    fn drop_cancelled(&mut self) {
        let before = self.answers.len();
        self.answers.retain(|&id, answer| {
            let keep = !answer.outbox.is_closed();
            if !keep {
                self.scheduler.remove(id);
            }
            keep
        });
        self.counters.cancelled += (before - self.answers.len()) as u64;
    }

    /// Counts and reports first admissions.
    fn announce(&mut self, admitted: &[Admission]) {
        for admission in admitted {
            self.counters.prompt_tokens += admission.prompt_tokens as u64;
            self.counters.cached_tokens += admission.cached_tokens as u64;
            if let Some(answer) = self.answers.get_mut(&admission.id) {
                answer.slot = None;
            }
        }
        self.publish();
        for admission in admitted {
            if let Some(answer) = self.answers.get_mut(&admission.id) {
                let cached_tokens = admission.cached_tokens as u32;
                answer
                    .outbox
                    .send_admitted(JobEvent::Admitted { cached_tokens });
            }
        }
    }

    /// Runs the model over the planned tokens; the logits wanted end up in `self.logits`, in the plan's order.
    fn compute(&mut self, plan: &Plan) -> Result<(), StepError> {
        let mut tokens = Vec::with_capacity(plan.tokens());
        let mut positions = Vec::with_capacity(plan.tokens());
        let mut sequences = Vec::with_capacity(plan.slices.len());
        for slice in &plan.slices {
            let Some(sequence) = self.scheduler.sequence(slice.id) else {
                continue;
            };
            let first = tokens.len();
            tokens.extend_from_slice(&sequence.tokens()[slice.positions.clone()]);
            positions.extend(slice.positions.clone().map(|position| position as u32));
            sequences.push(StepSequence {
                rows: first..tokens.len(),
                block_table: sequence.block_table(),
                wants_logits: slice.wants_logits,
            });
        }
        let batch = StepBatch {
            tokens: &tokens,
            positions: &positions,
            sequences: &sequences,
        };
        self.model.forward(&batch, &mut self.logits)?;
        let wanted = sequences
            .iter()
            .filter(|sequence| sequence.wants_logits)
            .count();
        let (got, expected) = (self.logits.len(), wanted * self.model.vocab());
        if got != expected {
            return Err(StepError(format!(
                "the model gave {got} logits instead of {expected}"
            )));
        }
        Ok(())
    }

    /// Turns a successful step into tokens, counts them, and only then tells the clients.
    fn deliver(&mut self, plan: &Plan) {
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
        let choice = self
            .sampler
            .choose(logits, &answer.sampling, answer.history(sequence));
        let Ok(choice) = choice else {
            self.counters.failed += 1;
            let message = "the model found no next token: all its probabilities are zero, not numbers, or \
                           of stop tokens that `min_tokens` holds back; try other sampling settings";
            return Some(Outcome::Failed(self.end(id)?, message.to_owned()));
        };
        self.counters.generated_tokens += 1;
        self.scheduler.push_token(id, choice.token);
        let (delta, finish) = answer.take(choice, self.vocabulary.as_ref());
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
    fn fail_step(&mut self, plan: &Plan, error: &StepError) {
        tracing::warn!(%error, jobs = plan.slices.len(), "a model step failed");
        let ids: Vec<_> = plan.slices.iter().map(|slice| slice.id).collect();
        self.fail(
            &ids,
            &format!("the model could not compute this request: {error}; try again"),
        );
    }

    /// Fails every job after a panic in the model, whose memory nobody can vouch for any more.
    fn give_up(&mut self, panic: &(dyn Any + Send)) {
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

    fn publish(&self) {
        let pool = self.scheduler.kv().pool();
        self.shared.publish(EngineStats {
            running: self.scheduler.running(),
            paused: self
                .answers
                .values()
                .filter(|answer| answer.outbox.is_paused())
                .count(),
            kv_blocks_used: pool.leased(),
            kv_blocks_cached: pool.cached(),
            kv_blocks_total: pool.capacity(),
            preemptions: self.scheduler.preemptions(),
            ..self.counters
        });
    }
}
