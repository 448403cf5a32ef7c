//! Idle connections to one replica, newest first.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use super::link::Link;
use crate::serve::threads;

/// Parts of a pool, one for each thread that speaks with clients as far as they reach: a connection is used again on
/// the thread that opened it, whose runtime is told of its events.
const PARTS: usize = 64;
/// Idle connections kept per replica and part; more are closed.
const IDLE_LINKS_MAX: usize = 512;
/// A connection idle for longer is closed. Below the 5 s after which common Python servers close theirs, so that
/// a request seldom meets a connection that is just being closed.
const IDLE_TIME_MAX: Duration = Duration::from_secs(4);

/// Idle connections to one replica. The newest is used first, so that the rest can age and close.
#[derive(Debug)]
pub struct Pool {
    parts: [Mutex<Vec<(Link, Instant)>>; PARTS],
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            parts: std::array::from_fn(|_| Mutex::default()),
        }
    }
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
        for part in &self.parts {
            lock(part).retain(|(_, since)| now.duration_since(*since) <= IDLE_TIME_MAX);
        }
    }

    /// Closes everything, for a replica that is gone.
    pub fn clear(&self) {
        self.parts.iter().for_each(|part| lock(part).clear());
    }

    fn pop(&self) -> Option<(Link, Instant)> {
        self.lock().pop()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Link, Instant)>> {
        lock(&self.parts[threads::index() % PARTS])
    }
}

fn lock(part: &Mutex<Vec<(Link, Instant)>>) -> MutexGuard<'_, Vec<(Link, Instant)>> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}
