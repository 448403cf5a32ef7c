//! The only place that spawns: every task is counted, told when to stop, and waited for.

use std::future::Future;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

/// A group of tasks that ends together. Clones belong to the same group.
#[derive(Clone, Debug)]
pub struct Tasks {
    stop: watch::Sender<bool>,
    /// Each task holds a clone and drops it when it ends; nothing is ever sent.
    alive: mpsc::Sender<()>,
}

/// Waits for the tasks of a group; there is one.
#[derive(Debug)]
pub struct Waiter {
    tasks: Tasks,
    ended: mpsc::Receiver<()>,
}

/// Tells a task when to stop.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Tasks {
    /// A new group and the one that waits for it.
    #[must_use]
    pub fn new() -> (Self, Waiter) {
        let (stop, _) = watch::channel(false);
        let (alive, ended) = mpsc::channel(1);
        let tasks = Self { stop, alive };
        (tasks.clone(), Waiter { tasks, ended })
    }

    /// Starts a task that the shutdown waits for. A task that waits for the outside has to watch [`Tasks::stop`].
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let alive = self.alive.clone();
        let counted = async move {
            task.await;
            drop(alive);
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the counted spawn that the ban points to"
        )]
        let _detached = tokio::spawn(counted);
    }

    /// A handle that resolves when the group is told to stop.
    #[must_use]
    pub fn stop(&self) -> Stop {
        Stop(self.stop.subscribe())
    }

    /// Tells every task of the group to stop.
    pub fn stop_all(&self) {
        self.stop.send_replace(true);
    }
}

impl Waiter {
    /// Tells the tasks to stop and waits for them, but no longer than `limit`. Returns whether all ended.
    pub async fn stop_and_wait(mut self, limit: Duration) -> bool {
        self.tasks.stop_all();
        drop(self.tasks);
        // `recv` gives `None` when the last clone of `alive` is gone.
        tokio::time::timeout(limit, self.ended.recv()).await.is_ok()
    }
}

impl Stop {
    /// Resolves when the group is told to stop, at once if that was before.
    pub async fn wait(&mut self) {
        // An error means that the group is gone, which is a stop too.
        let _ = self.0.wait_for(|stop| *stop).await;
    }

    /// Whether the group has been told to stop.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        *self.0.borrow()
    }
}

/// Lets hyper start the tasks that HTTP/2 needs within the group.
impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_waits_for_tasks_that_watch_the_stop() {
        let (tasks, waiter) = Tasks::new();
        let mut stop = tasks.stop();
        tasks.spawn(async move {
            stop.wait().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
        });
        drop(tasks);
        let start = tokio::time::Instant::now();
        assert!(waiter.stop_and_wait(Duration::from_secs(10)).await);
        assert_eq!(start.elapsed(), Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_does_not_end_costs_the_limit_and_no_more() {
        let (tasks, waiter) = Tasks::new();
        tasks.spawn(std::future::pending());
        drop(tasks);
        let start = tokio::time::Instant::now();
        assert!(!waiter.stop_and_wait(Duration::from_secs(10)).await);
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    }
}
