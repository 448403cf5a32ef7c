//! A waker between the two halves of a connection and the task that holds them. What the halves tell each other
//! while that task polls them is seen before the poll returns, so it need not put the task back into the run
//! queue, which on several threads wakes a second one for nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Rounds of one poll. Halves settle in two or three; a half that wakes itself for ever (as a socket does when the
/// task has had its share of time) is left to the scheduler.
const ROUNDS_MAX: usize = 4;

/// The waker of one connection, and whom it wakes.
#[derive(Debug)]
pub(super) struct Quiet {
    shared: Arc<Shared>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Shared {
    polling: AtomicBool,
    woken: AtomicBool,
    holder: AtomicWaker,
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    // Either this sees that the poll is over, or the poll sees that it was woken: both flags are written before
    // the other is read, in one order for all threads.
    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if !self.polling.load(Ordering::SeqCst) {
            self.holder.wake();
        }
    }
}

impl Default for Quiet {
    fn default() -> Self {
        let shared = Arc::<Shared>::default();
        Self {
            waker: shared.clone().into(),
            shared,
        }
    }
}

impl Quiet {
    /// Polls `step` until it is ready or nothing more happens within it. What happens later wakes `cx`.
    pub(super) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        mut step: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let shared = &*self.shared;
        shared.holder.register(cx.waker());
        for _ in 0..ROUNDS_MAX {
            shared.polling.store(true, Ordering::SeqCst);
            shared.woken.store(false, Ordering::SeqCst);
            let polled = step(&mut Context::from_waker(&self.waker));
            shared.polling.store(false, Ordering::SeqCst);
            if polled.is_ready() || !shared.woken.load(Ordering::SeqCst) {
                return polled;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Nobody holds the connection now.
    pub(super) fn let_go(&self) {
        drop(self.shared.holder.take());
    }
}

#[cfg(test)]
mod tests {
    use tokio_test::task;

    use super::*;

    /// How often `step` runs when it wakes itself `wakes` times, and whether the task is woken.
    #[track_caller]
    fn check(wakes: usize, runs: usize, task_woken: bool) {
        let quiet = Quiet::default();
        let mut ran = 0;
        let mut task = task::spawn(());
        let polled = task.enter(|cx, _| {
            quiet.poll(cx, |inner| {
                ran += 1;
                if ran <= wakes {
                    inner.waker().wake_by_ref();
                }
                Poll::<()>::Pending
            })
        });
        assert!(polled.is_pending());
        assert_eq!((ran, task.is_woken()), (runs, task_woken));
    }

    #[test]
    fn wakes_from_within_are_served_within_up_to_the_bound() {
        check(0, 1, false);
        check(1, 2, false);
        check(3, 4, false);
        check(4, 4, true);
        check(100, 4, true);
    }

    #[test]
    fn a_wake_from_outside_reaches_the_last_holder() {
        let quiet = Quiet::default();
        let mut kept = None;
        let mut task = task::spawn(());
        let _ = task.enter(|cx, _| {
            quiet.poll(cx, |inner| {
                kept = Some(inner.waker().clone());
                Poll::<()>::Pending
            })
        });
        assert!(!task.is_woken());
        kept.as_ref().unwrap().wake_by_ref();
        assert!(task.is_woken());
        let mut other = task::spawn(());
        let ready = other.enter(|cx, _| quiet.poll(cx, |_| Poll::Ready(7)));
        assert_eq!(ready, Poll::Ready(7));
        quiet.let_go();
        kept.unwrap().wake();
        assert!(!other.is_woken());
    }
}
