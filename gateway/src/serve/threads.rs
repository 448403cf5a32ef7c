//! Threads that each speak with their own clients on a runtime of their own. A client's connection, the connections to
//! replicas that serve it and their timers live on one thread, so that an event wakes nobody but the thread that it
//! is for. One pool of threads that share all tasks cost a quarter more per chunk and 55 µs more per lone request (BENCH.md).

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::sync::{mpsc, watch};

use super::drain::Tasks;

/// Tasks on their way to one thread; the acceptor waits when there are more.
const HANDOVERS_MAX: usize = 64;

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(0) };
}

/// The number of the thread that runs this, from 0; any other thread counts as the first.
#[must_use]
pub fn index() -> usize {
    INDEX.get()
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The threads. When this is dropped they end, with whatever still runs on them.
#[derive(Debug)]
pub struct Threads {
    threads: Vec<Thread>,
    /// Never sent to: the threads see it go.
    _alive: watch::Sender<()>,
}

#[derive(Debug)]
struct Thread {
    handover: mpsc::Sender<Task>,
    /// Tasks handed to the thread that have not ended.
    busy: Arc<AtomicUsize>,
}

/// Counts a task for as long as it lives.
struct Busy(Arc<AtomicUsize>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Threads {
    /// Starts one thread per core. Tasks that they run belong to `tasks`.
    ///
    /// # Errors
    /// The operating system refuses a thread or what its runtime needs.
    pub fn start(tasks: &Tasks) -> io::Result<Self> {
        let (alive, _) = watch::channel(());
        let count = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let start = |index| Thread::start(index, tasks.clone(), alive.subscribe());
        let threads = (0..count).map(start).collect::<io::Result<_>>()?;
        Ok(Self {
            threads,
            _alive: alive,
        })
    }

    /// Runs a task on the thread that has the fewest.
    pub async fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let load = |thread: &&Thread| thread.busy.load(Ordering::Relaxed);
        let Some(thread) = self.threads.iter().min_by_key(load) else {
            return;
        };
        thread.busy.fetch_add(1, Ordering::Relaxed);
        let busy = Busy(thread.busy.clone());
        let counted = Box::pin(async move {
            task.await;
            drop(busy);
        });
        // Refused only where the thread is gone, which drops the task and its count.
        let _ = thread.handover.send(counted).await;
    }
}

impl Thread {
    fn start(index: usize, tasks: Tasks, mut alive: watch::Receiver<()>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (handover, mut arriving) = mpsc::channel::<Task>(HANDOVERS_MAX);
        let mut stop = tasks.stop();
        let take = async move {
            // What has been handed over is started even if the stop comes first.
            while let Some(task) = tokio::select! {
                biased;
                task = arriving.recv() => task,
                () = stop.wait() => None,
            } {
                tasks.spawn(task);
            }
            // From here on only what runs keeps its group alive.
            drop((tasks, arriving));
            // The sender is gone, which is the end: what still runs ends with the runtime.
            let _ = alive.changed().await;
        };
        thread::Builder::new()
            .name(format!("clients-{index}"))
            .spawn(move || {
                INDEX.set(index);
                runtime.block_on(take);
            })?;
        Ok(Self {
            handover,
            busy: Arc::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn tasks_spread_evenly_and_stay_on_their_thread() {
        let (tasks, _waiter) = Tasks::new();
        let threads = Threads::start(&tasks).unwrap();
        let count = threads.threads.len();
        let mut counts = BTreeMap::new();
        let mut release = Vec::new();
        for _ in 0..3 * count {
            let (tell, told) = oneshot::channel();
            let (go, wait) = oneshot::channel::<()>();
            threads
                .spawn(async move {
                    let before = thread::current().id();
                    tell.send(index()).unwrap();
                    let _ = wait.await;
                    assert_eq!(thread::current().id(), before);
                })
                .await;
            *counts.entry(told.await.unwrap()).or_insert(0) += 1;
            release.push(go);
        }
        assert_eq!(counts, (0..count).map(|index| (index, 3)).collect());
        drop(release);
        while threads
            .threads
            .iter()
            .any(|t| t.busy.load(Ordering::Relaxed) > 0)
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn what_still_runs_ends_with_the_threads() {
        let (tasks, waiter) = Tasks::new();
        let threads = Threads::start(&tasks).unwrap();
        threads.spawn(std::future::pending()).await;
        drop((tasks, threads));
        assert!(waiter.stop_and_wait(Duration::from_secs(10)).await);
    }
}
