//! The operators' listener, apart from the clients': `/metrics`, `/livez`, `/readyz`, `/state`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::drain::{Stop, Tasks};
use crate::metrics::Metrics;
use crate::state::Known;

/// Operators' connections at one time.
const ADMIN_CONNECTIONS_MAX: usize = 64;
/// How long one has for a request head; also how long it may stay idle.
const ADMIN_HEAD_LIMIT: Duration = Duration::from_secs(30);

/// Answers operators.
#[derive(Clone, Debug)]
pub struct Admin {
    /// The series.
    pub metrics: Metrics,
    /// What the gateway knows.
    pub known: Arc<Known>,
    /// Stops when the client listener does: from then on the gateway is not ready.
    pub draining: Stop,
}

impl Admin {
    /// Accepts until the tasks are told to stop.
    pub async fn run(self, socket: TcpListener, tasks: Tasks) {
        let mut stop = tasks.stop();
        let room = Arc::new(Semaphore::new(ADMIN_CONNECTIONS_MAX));
        loop {
            let accepted = async {
                let permit = room.clone().acquire_owned().await;
                (socket.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                () = stop.wait() => return,
                accepted = accepted => accepted,
            };
            let Ok((stream, _)) = accepted else { continue };
            let (admin, mut stop) = (self.clone(), tasks.stop());
            tasks.spawn(async move {
                let answer = hyper::service::service_fn(|request: Request<_>| {
                    let response = admin.answer(request.method(), request.uri().path());
                    std::future::ready(Ok::<_, Infallible>(response))
                });
                let mut http = hyper::server::conn::http1::Builder::new();
                http.timer(TokioTimer::new())
                    .header_read_timeout(ADMIN_HEAD_LIMIT);
                let connection = http.serve_connection(TokioIo::new(stream), answer);
                tokio::select! {
                    _ = connection => {}
                    () = stop.wait() => {}
                }
                drop(permit);
            });
        }
    }

    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if method != Method::GET && method != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "GET only\n");
        }
        match path {
            "/metrics" => {
                self.metrics
                    .remembered(self.known.sessions.len(), self.known.prefixes.len());
                reply(
                    StatusCode::OK,
                    "text/plain; version=0.0.4",
                    self.metrics.text(),
                )
            }
            "/livez" => text(StatusCode::OK, "ok\n"),
            "/readyz" if self.draining.is_stopping() => text(
                StatusCode::SERVICE_UNAVAILABLE,
                "draining: no new requests, answers in flight go on\n",
            ),
            "/readyz" if !self.known.fleet.is_ready() => text(
                StatusCode::SERVICE_UNAVAILABLE,
                "no replica is ready; see /state\n",
            ),
            "/readyz" => text(StatusCode::OK, "ok\n"),
            "/state" => {
                let state = self.known.describe(self.draining.is_stopping());
                reply(StatusCode::OK, "application/json", state)
            }
            _ => text(
                StatusCode::NOT_FOUND,
                "here are /metrics, /livez, /readyz and /state\n",
            ),
        }
    }
}

fn text(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    reply(status, "text/plain", body)
}

fn reply(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
