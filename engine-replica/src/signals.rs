//! What the operating system says to the process.

use std::io;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// The requests to end, each taken once by a waiter.
pub struct Signals(std::sync::Arc<Notify>);

impl Signals {
    /// Starts to listen for SIGTERM and SIGINT, within a runtime.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn listen(tasks: &mut tokio::task::JoinSet<()>) -> io::Result<Signals> {
        let notify = std::sync::Arc::new(Notify::new());
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            let mut stream = signal(kind)?;
            let notify = std::sync::Arc::clone(&notify);
            tasks.spawn(async move {
                while stream.recv().await.is_some() {
                    notify.notify_one();
                }
            });
        }
        Ok(Signals(notify))
    }

    /// Until the next signal; one that came before the call counts.
    pub fn next(&self) -> impl Future<Output = ()> + use<> {
        let notify = std::sync::Arc::clone(&self.0);
        async move { notify.notified().await }
    }
}

/// Has the kernel send SIGTERM to this process when the one that started it ends, however it ends.
///
/// # Errors
/// When the kernel refuses, or the parent has ended already.
pub fn end_with_parent() -> io::Result<()> {
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // A parent that ended between the two calls sends nothing any more.
    if getppid() != parent {
        return Err(io::Error::other("the parent process has ended already"));
    }
    Ok(())
}
