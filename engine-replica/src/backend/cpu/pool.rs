//! A fixed set of threads that share the tasks of one parallel loop after another.
//!
//! Tasks are claimed one by one, so a thread that the system has put aside delays nobody: the caller works too, and
//! waits only for threads that have joined the loop. Which thread does a task never shows in its result.
#![expect(
    unsafe_code,
    reason = "lends a borrowed closure to other threads; A4 allows it in backend/cpu"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Pauses before a waiting thread parks. A pause takes 40 to 140 cycles on x86, so this is at most 50 µs.
const SPIN_PAUSES_MAX: usize = 1_000;

/// Threads in a pool, the caller's among them; far above the cores that one model can feed.
const THREADS_MAX: usize = 256;

/// A loop's body: called with the task's number and the thread's.
type Body = dyn Fn(usize, usize) + Sync;

/// The loop that is open to join.
#[derive(Clone, Copy)]
struct Loop {
    /// Borrowed from the caller of `Pool::run`, who stays there while any thread is inside.
    body: *const Body,
    tasks: usize,
}

// SAFETY: the body is `Sync`, and `Pool::run` keeps it alive for as long as any thread may call it.
unsafe impl Send for Loop {}

/// What the threads agree on; held for a few instructions at a time.
#[derive(Default)]
struct State {
    /// `Some` while the loop can be joined.
    open: Option<Loop>,
    /// Counts loops, so that a thread joins each at most once.
    generation: usize,
    /// Pool threads that have joined and not yet left; the open loop's body lives until this is 0.
    inside: usize,
    /// Pool threads waiting on `opened`.
    parked: usize,
    /// A task panicked on a pool thread.
    panicked: bool,
    /// The pool is going away.
    stop: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// A loop opened, or the pool stops.
    opened: Condvar,
    /// The last thread left.
    left: Condvar,
    /// Copy of `State::generation` that waiting threads can watch without the lock.
    generation: AtomicUsize,
    /// Copy of `State::inside`, for the caller.
    inside: AtomicUsize,
    /// The next task to claim; set back only while nobody is inside.
    next: AtomicUsize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics under the lock, and every state in it is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims and does tasks until none is left.
    fn work(&self, body: &Body, tasks: usize, thread: usize) {
        loop {
            let task = self.next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                return;
            }
            body(task, thread);
        }
    }

    /// The life of a pool thread.
    fn serve(&self, thread: usize) {
        let mut seen = 0;
        while let Some((generation, open)) = self.join(seen) {
            seen = generation;
            if let Some(Loop { body, tasks }) = open {
                let _inside = Inside(self);
                // SAFETY: this thread counts as inside, so the body's owner is still in `Pool::run`.
                self.work(unsafe { &*body }, tasks, thread);
            }
        }
    }

    /// Waits for a generation after `seen` and joins its loop if that is still open. `None` when the pool stops.
    fn join(&self, seen: usize) -> Option<(usize, Option<Loop>)> {
        spin_while(|| self.generation.load(Ordering::Acquire) == seen);
        let mut state = self.lock();
        while state.generation == seen && !state.stop {
            state.parked += 1;
            state = self
                .opened
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.parked -= 1;
        }
        if state.stop {
            return None;
        }
        if state.open.is_some() {
            state.inside += 1;
            self.inside.store(state.inside, Ordering::Release);
        }
        Some((state.generation, state.open))
    }
}

/// Pauses while `waiting`, a bounded number of times.
fn spin_while(waiting: impl Fn() -> bool) {
    for _ in 0..SPIN_PAUSES_MAX {
        if !waiting() {
            return;
        }
        std::hint::spin_loop();
    }
}

/// A pool thread's stay in a loop; leaving happens on drop, so that a panic leaves too.
struct Inside<'a>(&'a Shared);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.inside -= 1;
        state.panicked |= thread::panicking();
        self.0.inside.store(state.inside, Ordering::Release);
        if state.inside == 0 && state.open.is_none() {
            self.0.left.notify_one();
        }
    }
}

/// The caller's loop; closing happens on drop, so that the body outlives its users even when the caller panics.
struct Opened<'a>(&'a Shared);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.lock().open = None;
        spin_while(|| self.0.inside.load(Ordering::Acquire) > 0);
        let mut state = self.0.lock();
        while state.inside > 0 {
            state = self
                .0
                .left
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The threads.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// A pool of `threads`, the caller's among them: at least 1, and one a core where `None`. Threads that the system
    /// refuses to start are done without.
    pub(super) fn new(threads: Option<usize>) -> Self {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.unwrap_or_else(cores).clamp(1, THREADS_MAX);
        let shared = Arc::new(Shared::default());
        let start = |thread: usize| {
            let shared = Arc::clone(&shared);
            let named = thread::Builder::new().name(format!("compute-{thread}"));
            named.spawn(move || shared.serve(thread)).ok()
        };
        let threads = (1..threads).map_while(start).collect();
        Self { shared, threads }
    }

    /// Threads that may do tasks, the caller's among them; `run` numbers them from 0.
    pub(super) fn threads(&self) -> usize {
        self.threads.len() + 1
    }

    /// Calls `body(task, thread)` for each task in `0..tasks`, in any order, and returns when all are done.
    pub(super) fn run(&mut self, tasks: usize, body: &(dyn Fn(usize, usize) + Sync)) {
        if tasks <= 1 || self.threads.is_empty() {
            (0..tasks).for_each(|task| body(task, 0));
            return;
        }
        // SAFETY: only the lifetime changes. `Opened` below shuts the loop and waits for every thread inside before
        // this function is left, so nobody uses the body after its borrow.
        let body: &Body = unsafe { std::mem::transmute(body) };
        let shared = &*self.shared;
        shared.next.store(0, Ordering::Relaxed);
        let mut state = shared.lock();
        state.open = Some(Loop { body, tasks });
        state.generation = state.generation.wrapping_add(1);
        shared.generation.store(state.generation, Ordering::Release);
        if state.parked > 0 {
            shared.opened.notify_all();
        }
        drop(state);
        let opened = Opened(shared);
        shared.work(body, tasks, 0);
        drop(opened);
        assert!(
            !shared.lock().panicked,
            "a compute thread panicked; its message is above"
        );
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.stop = true;
        // Ends the watch of threads that spin.
        self.shared
            .generation
            .store(state.generation.wrapping_add(1), Ordering::Release);
        drop(state);
        self.shared.opened.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn every_task_is_done_once_by_any_number_of_threads() {
        for threads in [1, 2, 3, 8] {
            let mut pool = Pool::new(Some(threads));
            for tasks in [0, 1, 2, 7, 100] {
                let done: Vec<AtomicU32> = (0..tasks).map(|_| AtomicU32::new(0)).collect();
                pool.run(tasks, &|task, thread| {
                    assert!(thread < threads);
                    done[task].fetch_add(1, Ordering::Relaxed);
                });
                assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn many_short_loops_end_one_after_another() {
        let mut pool = Pool::new(Some(4));
        let sum = AtomicU32::new(0);
        for _ in 0..5_000 {
            pool.run(3, &|task, _| {
                sum.fetch_add(task as u32, Ordering::Relaxed);
            });
        }
        assert_eq!(sum.into_inner(), 5_000 * 3);
    }

    #[test]
    fn a_panic_in_a_task_reaches_the_caller() {
        let attempt = std::panic::catch_unwind(|| {
            Pool::new(Some(3)).run(64, &|task, _| assert!(task != 40, "task 40 fails"));
        });
        assert!(attempt.is_err());
    }
}
