//! What the engine thread does, step by step.

mod compute;
mod outcome;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use replica_core::block_key::KeyMaker;
use replica_core::eviction::Millis;
use replica_core::lease::KvCache;
use replica_core::plan::{PlanLimits, Scheduler};
use replica_core::sampler::Sampler;
use replica_core::sequence::{Admission, SequenceId, Terms};
use replica_core::text_stream::TokenText;
use tokio::time::Instant;

use super::answer::Answer;
use super::config::EngineConfig;
use super::job::{Job, JobEvent, SessionWish};
use super::outbox::Outbox;
use super::shared::{Command, Shared, Submission};
use super::stats::EngineStats;
use super::step::StepModel;

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
    started: Instant,
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
        let mut kv = KvCache::new(model.kv_blocks(), maker, config.prefix_cache);
        kv.set_kept_max(model.kv_blocks() * config.kept_percent / 100);
        let limits = PlanLimits {
            running_max: config.max_running,
            step_tokens: config.step_tokens,
            output_room: config.output_room,
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
            started: Instant::now(),
        }
    }

    /// Steps for as long as there is something to do, sleeps on the queue when there is not, and returns when it is
    /// drained, when nobody can ask for anything any more, or when the model has panicked.
    pub(super) fn run(mut self) {
        let mut idle = true;
        while self.take_commands(idle) {
            self.scheduler.advance(millis(self.started.elapsed()));
            self.grant_wishes();
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
        let terms = terms(&mut job);
        let context_left = self.shared.limits.context_max - prompt.len();
        let answer = Answer::new(job, Outbox::new(events, paused), slot, context_left);
        self.scheduler.submit(id, prompt, terms);
        self.answers.insert(id, answer);
    }

    fn grant_wishes(&mut self) {
        for wish in self.shared.take_wishes() {
            match wish {
                SessionWish::Keep(session, keep) => self.scheduler.keep(&session, millis(keep)),
                SessionWish::Release(session) => self.scheduler.release(&session),
            };
        }
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
            kv_blocks_kept: pool.kept(),
            sessions: pool.sessions(),
            evicted: pool.evicted(),
            kv_blocks_total: pool.capacity(),
            preemptions: self.scheduler.preemptions(),
            ..self.counters
        });
    }
}

/// What the scheduler should know of `job`; takes it out.
fn terms(job: &mut Job) -> Terms {
    let terms = std::mem::take(&mut job.terms);
    Terms {
        cache_salt: job.cache_salt.take().map(Arc::from),
        session: terms.session.map(Arc::from),
        keep_ms: terms.keep.map(millis),
        tenant: terms.tenant.map(Arc::from),
        priority: terms.priority,
        output_max: job.max_tokens as usize,
    }
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}
