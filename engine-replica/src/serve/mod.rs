//! The listener: connections in, answers out, and an orderly end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::api::Api;

mod connections;
mod drain;
#[cfg(test)]
mod tests;

use connections::Connections;

/// How an end came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every answer that had been begun was finished.
    Drained,
    /// The time for it ran out, or the second signal came, and answers were cut off.
    CutOff,
    /// The engine ended by itself after an error of its own; only a restart brings it back.
    EngineStopped,
}

/// Time after the engine has finished for the last bytes to reach their clients.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// Serves until `signals` has yielded once, then drains: new requests are refused with 503, those that run are finished
/// within `drain_max`, and connections close after their current answer. A second signal ends the wait.
pub async fn serve<F>(
    api: Arc<Api>,
    listener: TcpListener,
    mut signals: impl FnMut() -> F,
    drain_max: Duration,
) -> Ended
where
    F: Future<Output = ()>,
{
    let (close, closing) = watch::channel(false);
    let mut connections = Connections::new(Arc::clone(&api), closing);
    let stopped = drain::signal_or_stop(api.engine(), signals());
    if connections.accept_until(&listener, stopped).await == drain::Cause::EngineStopped {
        tracing::error!(
            "the engine has stopped by itself; this replica ends so that it can be restarted"
        );
        let _ = close.send(true);
        // What fails here is told to its client by the failure events of the engine.
        let _ = timeout(CLOSE_MAX, connections.all_closed()).await;
        return Ended::EngineStopped;
    }
    tracing::info!(
        "draining: new requests are refused, running ones have {} s",
        drain_max.as_secs()
    );
    api.engine().drain();
    // New connections are still answered, with a refusal that a gateway understands better than a closed port.
    let drained = drain::wait(api.engine(), signals(), drain_max);
    let ended = connections.accept_until(&listener, drained).await;
    drop(listener);
    // The receivers live in the connections; none left is as good as all told.
    let _ = close.send(true);
    let closed =
        ended == Ended::Drained && timeout(CLOSE_MAX, connections.all_closed()).await.is_ok();
    if closed {
        return Ended::Drained;
    }
    tracing::warn!("the time to drain is over: what still runs is cut off");
    connections.cut_off().await;
    Ended::CutOff
}
