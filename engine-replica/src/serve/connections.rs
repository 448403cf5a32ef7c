//! One task a connection, all of them known, so that the end can wait for them.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::api::Api;

/// Most connections at a time; the next wait in the kernel's queue. Twice what a fleet of gateways pools.
const CONNECTIONS_MAX: usize = 1024;
/// Longest wait for the next request's head on an open connection. Longer than any gateway keeps a connection idle, so
/// that the gateway closes first and never sends into a closing one.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(120);
/// Pause after a failed accept: out of file descriptors is the usual cause, and passes.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// The open connections.
pub(super) struct Connections {
    api: Arc<Api>,
    closing: watch::Receiver<bool>,
    tasks: JoinSet<()>,
}

impl Connections {
    /// `closing` turns true when connections shall end after their current answer.
    pub(super) fn new(api: Arc<Api>, closing: watch::Receiver<bool>) -> Connections {
        Connections {
            api,
            closing,
            tasks: JoinSet::new(),
        }
    }

    /// Takes connections until `end` comes.
    pub(super) async fn accept_until<T>(
        &mut self,
        listener: &TcpListener,
        end: impl Future<Output = T>,
    ) -> T {
        let mut end = pin!(end);
        // Ends with `end`.
        loop {
            let room = self.tasks.len() < CONNECTIONS_MAX;
            tokio::select! {
                ended = &mut end => return ended,
                Some(_) = self.tasks.join_next() => {}
                accepted = listener.accept(), if room => match accepted {
                    Ok((stream, _)) => self.open(stream),
                    Err(error) => {
                        tracing::warn!("a connection could not be taken: {error}");
                        if let Ok(ended) = timeout(ACCEPT_RETRY, &mut end).await {
                            return ended;
                        }
                    }
                },
            }
        }
    }

    /// Until no connection is left.
    pub(super) async fn all_closed(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    /// Ends every connection where it stands.
    pub(super) async fn cut_off(&mut self) {
        self.tasks.shutdown().await;
    }

    fn open(&mut self, stream: TcpStream) {
        // Each event of a stream is a small write that must not wait for the one before to be acknowledged.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("no TCP_NODELAY: {error}");
        }
        self.tasks.spawn(connection(
            Arc::clone(&self.api),
            stream,
            self.closing.clone(),
        ));
    }
}

async fn connection(api: Arc<Api>, stream: TcpStream, mut closing: watch::Receiver<bool>) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let api = Arc::clone(&api);
        async move { Ok::<_, Infallible>(api.handle(request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = pin!(served);
    let told_to_close = async {
        // An error means that the listener is gone, which is closing too.
        let _ = closing.wait_for(|closing| *closing).await;
    };
    let result = tokio::select! {
        result = served.as_mut() => result,
        () = told_to_close => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        // A client that leaves is no news.
        tracing::debug!("a connection ended early: {error}");
    }
}
