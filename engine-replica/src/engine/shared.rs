//! The few words that the async side and the engine thread both look at.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, watch};

use super::job::{Job, JobEvent, SessionWish};
use super::stats::EngineStats;
use crate::model::ExpertLoad;

/// What the async side sends down the one queue.
pub(super) enum Command {
    /// A job to run.
    Submit(Box<Submission>),
    /// Something that a sleeping engine should look at: room in a stream, a dropped stream, a drain, a reset.
    Wake,
}

/// A job on its way to the engine thread.
pub(super) struct Submission {
    pub(super) job: Job,
    pub(super) events: mpsc::Sender<JobEvent>,
    /// Set by the engine when `events` is full, cleared by the stream's reader when it makes room.
    pub(super) paused: Arc<AtomicBool>,
    pub(super) slot: QueueSlot,
}

/// Places of the queue beyond `queue_max` jobs: the one `Wake` that may be in it.
pub(super) const QUEUE_WAKES_MAX: usize = 1;

/// Wishes for sessions that may wait for the end of a step.
pub(super) const SESSION_WISHES_MAX: usize = 1024;

/// What a job is checked against before it may queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) queue_max: usize,
    pub(super) context_max: usize,
    pub(super) vocab: usize,
    pub(super) kv_blocks: usize,
}

/// Flags and figures between the two sides; nothing here is held across a step.
pub(super) struct Shared {
    pub(super) limits: Limits,
    /// Jobs accepted and not yet admitted for the first time; never above `limits.queue_max`.
    queued: AtomicUsize,
    pub(super) draining: AtomicBool,
    pub(super) healthy: AtomicBool,
    pub(super) reset_wanted: AtomicBool,
    /// A `Wake` is in the queue; the engine clears this before it looks at anything else.
    pub(super) wake_pending: AtomicBool,
    /// Not yet told to the scheduler; never more than `SESSION_WISHES_MAX`.
    wishes: Mutex<Vec<SessionWish>>,
    stats: Mutex<EngineStats>,
    /// How the model's experts are used; `None` where it has none.
    pub(super) expert_load: Option<Arc<ExpertLoad>>,
    /// Becomes true when the thread has ended.
    pub(super) stopped: watch::Sender<bool>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

impl Shared {
    pub(super) fn new(limits: Limits, expert_load: Option<Arc<ExpertLoad>>) -> Self {
        let stats = EngineStats {
            kv_blocks_total: limits.kv_blocks,
            ..EngineStats::default()
        };
        Self {
            limits,
            queued: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            healthy: AtomicBool::new(true),
            reset_wanted: AtomicBool::new(false),
            wake_pending: AtomicBool::new(false),
            wishes: Mutex::new(Vec::new()),
            stats: Mutex::new(stats),
            expert_load,
            stopped: watch::Sender::new(false),
            thread: Mutex::new(None),
        }
    }

    pub(super) fn stats(&self) -> EngineStats {
        let stats = *self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        EngineStats {
            waiting: self.queued.load(Ordering::SeqCst),
            ..stats
        }
    }

    /// Notes a wish, or says how many wait already.
    pub(super) fn wish(&self, wish: SessionWish) -> Result<(), usize> {
        let mut wishes = self.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        if wishes.len() == SESSION_WISHES_MAX {
            return Err(wishes.len());
        }
        wishes.push(wish);
        Ok(())
    }

    pub(super) fn take_wishes(&self) -> Vec<SessionWish> {
        let mut wishes = self.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *wishes)
    }

    pub(super) fn publish(&self, stats: EngineStats) {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }
}

/// A place in the queue, given back by `Drop` at the job's first admission or at its end, whichever comes first.
pub(super) struct QueueSlot(Arc<Shared>);

impl QueueSlot {
    /// Takes a place, or says how many jobs hold one.
    pub(super) fn take(shared: &Arc<Shared>) -> Result<Self, usize> {
        let max = shared.limits.queue_max;
        shared
            .queued
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| {
                (n < max).then_some(n + 1)
            })
            .map(|_| Self(Arc::clone(shared)))
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.0.queued.fetch_sub(1, Ordering::SeqCst);
    }
}
