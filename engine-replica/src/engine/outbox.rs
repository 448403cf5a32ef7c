//! The engine's end of a job's stream. It never blocks: a place is reserved before there is something to put in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{OwnedPermit, Sender};

use super::job::JobEvent;

/// Places for what comes next. The first and the last event have theirs from the beginning; a delta's is taken before
/// its sequence may be in a step, so that whatever the step brings can be sent at once.
pub(super) struct Outbox {
    events: Sender<JobEvent>,
    paused: Arc<AtomicBool>,
    admitted: Option<OwnedPermit<JobEvent>>,
    delta: Option<OwnedPermit<JobEvent>>,
    ending: Option<OwnedPermit<JobEvent>>,
}

impl Outbox {
    pub(super) fn new(events: Sender<JobEvent>, paused: Arc<AtomicBool>) -> Self {
        let (admitted, ending) = (reserve(&events).ok(), reserve(&events).ok());
        Self {
            events,
            paused,
            admitted,
            delta: None,
            ending,
        }
    }

    /// The client has gone away.
    pub(super) fn is_closed(&self) -> bool {
        self.events.is_closed()
    }

    /// The last try to reserve a place failed, and the client has read nothing since.
    pub(super) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::SeqCst)
    }

    /// Whether there is a place for a delta. If not, the reader wakes the engine when it has made one.
    pub(super) fn is_ready(&mut self) -> bool {
        if self.delta.is_none() && !self.try_reserve_delta() {
            // Tried again after the flag is up: the reader may have made room just before it could see the flag.
            self.paused.store(true, Ordering::SeqCst);
            if self.try_reserve_delta() {
                self.paused.store(false, Ordering::SeqCst);
            }
        }
        self.delta.is_some()
    }

    pub(super) fn send_admitted(&mut self, event: JobEvent) {
        send(self.admitted.take(), event);
    }

    pub(super) fn send_delta(&mut self, event: JobEvent) {
        debug_assert!(
            self.delta.is_some(),
            "a sequence was in a step without a place for its delta"
        );
        send(self.delta.take(), event);
    }

    /// Sends `Finished` or `Failed`.
    pub(super) fn end(mut self, event: JobEvent) {
        send(self.ending.take(), event);
    }

    fn try_reserve_delta(&mut self) -> bool {
        self.delta = reserve(&self.events).ok();
        self.delta.is_some()
    }
}

fn reserve(
    events: &Sender<JobEvent>,
) -> Result<OwnedPermit<JobEvent>, TrySendError<Sender<JobEvent>>> {
    events.clone().try_reserve_owned()
}

/// A permit is missing only where the client was gone when it was asked for.
fn send(permit: Option<OwnedPermit<JobEvent>>, event: JobEvent) {
    if let Some(permit) = permit {
        permit.send(event);
    }
}
