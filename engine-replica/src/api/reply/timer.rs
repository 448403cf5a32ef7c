//! When a request's tokens came, and how it ended.

use std::sync::Arc;

use tokio::time::Instant;

use crate::metrics::{Ending, Metrics};

/// Observes one request; a timer that is dropped before its ending counts as a client that went away.
pub(crate) struct Timer {
    metrics: Arc<Metrics>,
    arrived: Instant,
    /// When the last token came.
    last: Option<Instant>,
    ended: bool,
}

impl Timer {
    /// For a request that arrived at `arrived` and that the engine has taken.
    pub(crate) fn new(metrics: Arc<Metrics>, arrived: Instant) -> Timer {
        Timer {
            metrics,
            arrived,
            last: None,
            ended: false,
        }
    }

    /// So many tokens have come, whether or not they made text. Tokens that come together share the time since the
    /// ones before.
    pub(crate) fn tokens(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let now = Instant::now();
        let mut spread = count;
        if self.last.is_none() {
            let waited = now.duration_since(self.arrived).as_secs_f64();
            self.metrics.time_to_first_token.observe(waited);
            spread -= 1;
        }
        let since = self.last.unwrap_or(now);
        #[expect(clippy::cast_precision_loss, reason = "a few tokens at a time")]
        let gap = now.duration_since(since).as_secs_f64() / count as f64;
        for _ in 0..spread {
            self.metrics.inter_token.observe(gap);
        }
        self.last = Some(now);
    }

    /// The request has ended; only the first ending counts.
    pub(crate) fn end(&mut self, ending: Ending) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.metrics.count_ending(ending);
        if matches!(ending, Ending::Finished(_)) {
            self.metrics
                .request_time
                .observe(self.arrived.elapsed().as_secs_f64());
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.end(Ending::Abort);
    }
}
