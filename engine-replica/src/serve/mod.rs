//! The listener: connections in, answers out, and an orderly end.

use std::future::Future;
use std::net::SocketAddr;
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
    let first = signals();
    connections.accept_until(&listener, first).await;
    tracing::info!("draining: new requests are refused, running ones have {} s", drain_max.as_secs());
    api.engine().drain();
    // New connections are still answered, with a refusal that a gateway understands better than a closed port.
    let drained = drain::wait(api.engine(), signals(), drain_max);
    let ended = connections.accept_until(&listener, drained).await;
    drop(listener);
    // The receivers live in the connections; none left is as good as all told.
    let _ = close.send(true);
    if timeout(CLOSE_MAX, connections.all_closed()).await.is_err() || ended == Ended::CutOff {
        tracing::warn!("answers were cut off: the time to drain is over");
        return Ended::CutOff;
    }
    Ended::Drained
}

/// The address that a listener was given, for a port of 0.
///
/// # Errors
/// When the socket is already closed.
pub fn address(listener: &TcpListener) -> std::io::Result<SocketAddr> {
    listener.local_addr()
}
