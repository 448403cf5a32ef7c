//! The breaker of one replica as requests meet it.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus::IntGauge;
use tokio::time::Instant;

use super::breaker::{Breaker, Went};
use super::replicas::Replica;

/// Guards one replica; its series says whether it is open.
#[derive(Debug)]
pub struct Gate {
    breaker: Mutex<Breaker>,
    open: IntGauge,
}

impl Gate {
    /// A gate that lets requests through, shown as `open`.
    #[must_use]
    pub fn new(open: IntGauge) -> Self {
        Self {
            breaker: Mutex::default(),
            open,
        }
    }

    /// Whether the next request may go to the replica.
    #[must_use]
    pub fn takes(&self) -> bool {
        let breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        breaker.takes(Instant::now())
    }

    /// Whether the replica is left alone, but for trials.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.with(|breaker, _| breaker.is_open())
    }

    /// Another process answers: what its predecessor did says nothing about it.
    pub fn reset(&self) {
        self.with(|breaker, _| *breaker = Breaker::default());
    }

    fn with<T>(&self, act: impl FnOnce(&mut Breaker, Instant) -> T) -> T {
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut breaker, Instant::now());
        self.open.set(i64::from(breaker.is_open()));
        result
    }
}

/// One attempt at a replica, until the first byte of its answer. Dropped before it has told, it is a client that left.
#[derive(Debug)]
pub struct Try {
    replica: Arc<Replica>,
    trial: bool,
    went: Went,
}

impl Try {
    /// A request goes to `replica`.
    #[must_use]
    pub fn new(replica: &Arc<Replica>) -> Self {
        Self {
            trial: replica.gate().with(Breaker::begin),
            replica: replica.clone(),
            went: Went::Unknown,
        }
    }

    /// How it went.
    pub fn ended(mut self, went: Went) {
        self.went = went;
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        let opened = self.replica.gate().with(|breaker, now| {
            let was_open = breaker.is_open();
            breaker.end(self.went, self.trial, now);
            (was_open, breaker.is_open())
        });
        let name = &**self.replica.name();
        match opened {
            (false, true) => tracing::warn!(
                replica = name,
                "replica is ready by its probes but fails requests: it gets one at a time, now and then"
            ),
            (true, false) => tracing::info!(replica = name, "replica answers requests again"),
            _ => {}
        }
    }
}
