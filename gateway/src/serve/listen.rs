//! Accepts client connections and speaks HTTP/1.1 or HTTP/2 on each, with TLS where it is configured.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tower::Service;

use super::drain::Tasks;
use super::threads::Threads;
use super::tls::Tls;
use crate::metrics::Metrics;

/// Requests at one time on one HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 1024;
/// Pings on a silent HTTP/2 connection find a client that is gone without having said so.
const HTTP2_PING_EVERY: Duration = Duration::from_secs(30);
/// After a failed accept, most often for want of file descriptors: long enough for some to be freed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What every connection needs.
#[derive(Clone)]
pub struct Listen<S> {
    /// Answers requests. Always ready: only its `call` says no.
    pub service: S,
    /// TLS, where configured.
    pub tls: Option<Arc<Tls>>,
    /// The group that connections belong to.
    pub tasks: Tasks,
    /// How long a client has for its TLS handshake and for each request head.
    pub request_head: Duration,
    /// How long a client may take nothing of what was sent to it.
    pub client_stall: Duration,
    /// Connections at one time.
    pub connections_max: usize,
    /// Counts connections.
    pub metrics: Metrics,
}

impl<S> std::fmt::Debug for Listen<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listen")
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

/// Counts a connection for as long as it lives.
struct Counted(prometheus::IntGauge);

impl Counted {
    fn new(gauge: &prometheus::IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl<S, B> Listen<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Accepts until the tasks are told to stop; connections go on, each on one of `threads`.
    pub async fn run(self, socket: TcpListener, threads: Arc<Threads>) {
        let mut stop = self.tasks.stop();
        let room = Arc::new(Semaphore::new(self.connections_max));
        let this = Arc::new(self);
        loop {
            let accepted = async {
                let permit = room.clone().acquire_owned().await;
                let accepted = socket.accept().await;
                (accepted.and_then(|(stream, _)| stream.into_std()), permit)
            };
            let (accepted, permit) = tokio::select! {
                () = stop.wait() => return,
                accepted = accepted => accepted,
            };
            match accepted {
                // The socket leaves this thread's runtime and enters that of the thread that speaks with it.
                Ok(stream) => {
                    let connection = this.clone();
                    let speak = async move {
                        match TcpStream::from_std(stream) {
                            Ok(stream) => connection.serve(stream).await,
                            Err(error) => {
                                tracing::warn!(%error, "a connection could not be served")
                            }
                        }
                        drop(permit);
                    };
                    threads.spawn(speak).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn serve(&self, stream: TcpStream) {
        let _counted = Counted::new(self.metrics.connections());
        // Each event of a stream goes out as it comes and does not wait for the client's acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY refused");
        }
        limit_stall(&stream, self.client_stall);
        let Some(tls) = &self.tls else {
            return self.speak(stream).await;
        };
        match timeout(self.request_head, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => Box::pin(self.speak(stream)).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake took too long"),
        }
    }

    /// Speaks HTTP on a stream until either side ends it. At shutdown what is in flight is finished first.
    async fn speak<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, stream: I) {
        let mut http = auto::Builder::new(self.tasks.clone());
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.request_head);
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(HTTP2_STREAMS_MAX)
            .keep_alive_interval(HTTP2_PING_EVERY);
        // The builder waits for the first bytes without a limit, so the first request has one here.
        let spoke = Arc::new(AtomicBool::new(false));
        let (service, first) = (self.service.clone(), spoke.clone());
        let answer = hyper::service::service_fn(move |request| {
            first.store(true, Ordering::Relaxed);
            service.clone().call(request)
        });
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), answer));
        let mut stop = self.tasks.stop();
        let silence = async {
            sleep(self.request_head).await;
            if spoke.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = stop.wait() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = silence => return,
        };
        if let Err(error) = ended {
            // A client that went away is everyday life.
            tracing::debug!(%error, "connection ended");
        }
    }
}

/// Has the kernel close a connection whose peer takes nothing for this long. The kernel keeps the time because it alone
/// knows what the client has taken: a write that waits for room tells a slow reader from a dead one no better.
#[cfg(target_os = "linux")]
fn limit_stall(stream: &TcpStream, stall: Duration) {
    let stall = u32::try_from(stall.as_millis()).unwrap_or(u32::MAX);
    if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(stream, stall) {
        tracing::debug!(%error, "TCP_USER_TIMEOUT refused");
    }
}

/// Other systems keep no such time for a socket.
#[cfg(not(target_os = "linux"))]
fn limit_stall(_: &TcpStream, _: Duration) {}
