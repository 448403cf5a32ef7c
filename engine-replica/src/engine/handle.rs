//! The async side's end of the engine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, PoisonError};

use replica_core::BLOCK_TOKENS;
use tokio::sync::mpsc;

use super::job::{Job, SessionWish};
use super::shared::{Command, QueueSlot, Shared, Submission};
use super::stats::EngineStats;
use super::stream::{JobStream, STREAM_EVENTS_MAX};
use crate::model::ExpertLoad;

/// Why a job was not taken. Nothing of it has run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Try again in a moment (503 with Retry-After).
    #[error("the queue is full: {depth} requests wait already; try again in a moment")]
    QueueFull {
        /// Jobs that wait.
        depth: usize,
    },
    /// Finishing what was accepted before shutting down (503; another replica will take it).
    #[error("this replica is shutting down and takes no new requests")]
    Draining,
    /// The engine thread is gone after a panic (503; only a restart helps).
    #[error("the engine has stopped after an internal error; the replica must be restarted")]
    Stopped,
    /// Nothing to compute or nothing to generate (400).
    #[error(
        "the prompt has {prompt} tokens and `max_tokens` is {max_tokens}; both must be at least 1"
    )]
    Empty {
        /// Prompt tokens.
        prompt: usize,
        /// Tokens asked for.
        max_tokens: u32,
    },
    /// No room for even one new token (400).
    #[error(
        "the prompt has {prompt} tokens and the context is {context}; shorten it to at most {} tokens",
        context.saturating_sub(1)
    )]
    TooLong {
        /// Prompt tokens.
        prompt: usize,
        /// Positions of the model or of the replica's setting, whichever is less.
        context: usize,
    },
    /// The prompt names a token that the model does not have (500: tokenizer and weights do not match).
    #[error("token {token} is not in the model's vocabulary of {vocab} tokens")]
    UnknownToken {
        /// The token.
        token: u32,
        /// Rows of the model's logits.
        vocab: usize,
    },
    /// More KV than the whole replica has (400).
    #[error(
        "prompt and `max_tokens` need {tokens} tokens of KV, which is {blocks_needed} blocks of {BLOCK_TOKENS}, \
         and this replica has {blocks_total}; lower `max_tokens` or shorten the prompt"
    )]
    NeverFits {
        /// Prompt and output together, less the last token, which needs no KV.
        tokens: usize,
        /// Blocks for `tokens`.
        blocks_needed: usize,
        /// Blocks that the replica has.
        blocks_total: usize,
    },
}

/// Submits jobs to the engine thread and reads its figures. Cheap to clone; when the last handle and the last stream
/// are gone, the thread ends.
#[derive(Clone)]
pub struct EngineHandle {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: SyncSender<Command>,
}

impl EngineHandle {
    /// Queues a job. Never waits: a queue without room is an error for the caller to pass on.
    pub fn submit(&self, job: Job) -> Result<JobStream, SubmitError> {
        if !self.healthy() {
            return Err(SubmitError::Stopped);
        }
        if self.is_draining() {
            return Err(SubmitError::Draining);
        }
        self.check(&job)?;
        let slot =
            QueueSlot::take(&self.shared).map_err(|depth| SubmitError::QueueFull { depth })?;
        let (sender, events) = mpsc::channel(STREAM_EVENTS_MAX);
        let paused = Arc::new(AtomicBool::new(false));
        let submission = Submission {
            job,
            events: sender,
            paused: Arc::clone(&paused),
            slot,
        };
        match self.queue.try_send(Command::Submit(Box::new(submission))) {
            Ok(()) => Ok(JobStream {
                events,
                paused,
                engine: self.clone(),
                ended: false,
            }),
            Err(TrySendError::Full(_)) => Err(SubmitError::QueueFull {
                depth: self.stats().waiting,
            }),
            Err(TrySendError::Disconnected(_)) if self.is_draining() => Err(SubmitError::Draining),
            Err(TrySendError::Disconnected(_)) => Err(SubmitError::Stopped),
        }
    }

    /// What the engine counted up to the end of its last step.
    pub fn stats(&self) -> EngineStats {
        self.shared.stats()
    }

    /// How the model's experts are used; `None` where it has none.
    pub fn expert_load(&self) -> Option<Arc<ExpertLoad>> {
        self.shared.expert_load.clone()
    }

    /// Forgets all cached KV before the next step. Sequences that run keep theirs, but nothing that was computed
    /// before this call is reused by a job submitted after it.
    pub fn reset_prefix_cache(&self) {
        self.shared.reset_wanted.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Says what a session's KV is worth, from the next step on. A session of which nothing is known is passed over.
    ///
    /// # Errors
    /// `QueueFull` when too many of these wait for the end of a step.
    pub fn wish(&self, wish: SessionWish) -> Result<(), SubmitError> {
        let noted = self.shared.wish(wish);
        self.wake();
        noted.map_err(|depth| SubmitError::QueueFull { depth })
    }

    /// Refuses new jobs from now on; the thread ends when those accepted so far have.
    pub fn drain(&self) {
        self.shared.draining.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Whether `drain` was called.
    pub fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::SeqCst)
    }

    /// False once the model has panicked: every job has failed and no other is taken.
    pub fn healthy(&self) -> bool {
        self.shared.healthy.load(Ordering::SeqCst)
    }

    /// Waits for the thread's end without blocking; call `drain` first.
    pub async fn stopped(&self) {
        let mut stopped = self.shared.stopped.subscribe();
        // An error would mean that the sender is gone, and this handle keeps it alive.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Blocks until the thread has ended; call `drain` first. Not for an async runtime's thread.
    pub fn join(&self) {
        let thread = self
            .shared
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panic was reported by the thread itself and shows in `healthy`.
            let _ = thread.join();
        }
    }

    /// Makes a sleeping engine look at its flags and streams. One wake in the queue is enough for any number of
    /// reasons, so wakes never take a job's place.
    pub(super) fn wake(&self) {
        if !self.shared.wake_pending.swap(true, Ordering::SeqCst) {
            let _ = self.queue.try_send(Command::Wake);
        }
    }

    /// Refuses what could never run, with the numbers.
    fn check(&self, job: &Job) -> Result<(), SubmitError> {
        let limits = self.shared.limits;
        let prompt = job.prompt.len();
        if prompt == 0 || job.max_tokens == 0 {
            return Err(SubmitError::Empty {
                prompt,
                max_tokens: job.max_tokens,
            });
        }
        if prompt >= limits.context_max {
            return Err(SubmitError::TooLong {
                prompt,
                context: limits.context_max,
            });
        }
        if let Some(&token) = job
            .prompt
            .iter()
            .find(|&&token| token as usize >= limits.vocab)
        {
            return Err(SubmitError::UnknownToken {
                token,
                vocab: limits.vocab,
            });
        }
        let tokens = (prompt + job.max_tokens as usize).min(limits.context_max) - 1;
        let blocks_needed = tokens.div_ceil(BLOCK_TOKENS);
        if blocks_needed > limits.kv_blocks {
            return Err(SubmitError::NeverFits {
                tokens,
                blocks_needed,
                blocks_total: limits.kv_blocks,
            });
        }
        Ok(())
    }
}
