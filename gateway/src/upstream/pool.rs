//! Idle connections to one replica, newest first.

use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use super::link::Link;

/// Idle connections kept per replica; more are closed.
const IDLE_LINKS_MAX: usize = 512;
/// A connection idle for longer is closed. Below the 5 s after which common Python servers close theirs, so that
/// a request seldom meets a connection that is just being closed.
const IDLE_TIME_MAX: Duration = Duration::from_secs(4);

/// Idle connections to one replica. The newest is used first, so that the rest can age and close.
#[derive(Debug, Default)]
pub struct Pool {
    idle: Mutex<Vec<(Link, Instant)>>,
}

impl Pool {
    /// The newest idle connection that is still open.
    pub(super) async fn take(&self) -> Option<Link> {
        while let Some((mut link, since)) = self.pop() {
            if since.elapsed() > IDLE_TIME_MAX {
                // All that are left are older still.
                self.lock().clear();
                return None;
            }
            if poll_fn(|cx| Poll::Ready(link.poll_reusable(cx))).await {
                return Some(link);
            }
        }
        None
    }

    pub(super) fn put(&self, link: Link) {
        let mut idle = self.lock();
        if idle.len() < IDLE_LINKS_MAX {
            idle.push((link, Instant::now()));
        }
    }

    /// Closes what has been idle for too long.
    pub fn sweep(&self) {
        let now = Instant::now();
        self.lock()
            .retain(|(_, since)| now.duration_since(*since) <= IDLE_TIME_MAX);
    }

    /// Closes everything, for a replica that is gone.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn pop(&self) -> Option<(Link, Instant)> {
        self.lock().pop()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Link, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
