//! The client listener's paths.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use tower::{Layer, Service};

use crate::chat::relay::{X_PINION_REASON, X_PINION_REPLICA};
use crate::failure::Failure;
use crate::layers::Answer;
use crate::layers::observe::Arrived;
use crate::metrics::Outcome;
use crate::reply::ReplyBody;
use crate::state::Known;

/// Makes [`Endpoints`].
#[derive(Clone, Debug)]
pub struct EndpointsLayer {
    known: Arc<Known>,
}

impl EndpointsLayer {
    /// Answers from what is `known`.
    #[must_use]
    pub fn new(known: Arc<Known>) -> Self {
        Self { known }
    }
}

impl<S> Layer<S> for EndpointsLayer {
    type Service = Endpoints<S>;

    fn layer(&self, chat: S) -> Endpoints<S> {
        Endpoints {
            chat,
            known: self.known.clone(),
        }
    }
}

/// Sends a request to what its path names.
#[derive(Clone, Debug)]
pub struct Endpoints<S> {
    chat: S,
    known: Arc<Known>,
}

impl<S, B> Service<Arrived<B>> for Endpoints<S>
where
    S: Service<Arrived<B>, Response = Response<ReplyBody>, Error = Failure>,
    S: Service<Arrived<B>, Future = Answer<Response<ReplyBody>, Failure>>,
{
    type Response = Response<ReplyBody>;
    type Error = Failure;
    type Future = Answer<Response<ReplyBody>, Failure>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.chat.poll_ready(cx)
    }

    fn call(&mut self, arrived: Arrived<B>) -> Self::Future {
        let (method, path) = (arrived.request.method(), arrived.request.uri().path());
        let answer = match path {
            "/v1/chat/completions" if method == Method::POST => return self.chat.call(arrived),
            "/v1/chat/completions" => Err(Failure::MethodNotAllowed { allowed: "POST" }),
            "/v1/models" | "/health" if method != Method::GET => {
                Err(Failure::MethodNotAllowed { allowed: "GET" })
            }
            "/v1/models" => Ok(json(StatusCode::OK, self.known.fleet.models().body())),
            "/health" if self.known.fleet.is_ready() => Ok(json(
                StatusCode::OK,
                Bytes::from_static(b"{\"status\":\"ok\"}"),
            )),
            "/health" => Err(Failure::NoReplica),
            path => Err(Failure::NotFound {
                path: shortened(path),
            }),
        };
        if answer.is_ok() {
            arrived.record.ended(Outcome::Ok);
        }
        Box::pin(std::future::ready(answer))
    }
}

/// A path as an error message repeats it.
fn shortened(path: &str) -> String {
    const PATH_CHARS_MAX: usize = 100;
    path.chars().take(PATH_CHARS_MAX).collect()
}

fn json(status: StatusCode, body: Bytes) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::whole(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(X_PINION_REPLICA, HeaderValue::from_static("none"));
    headers.insert(X_PINION_REASON, HeaderValue::from_static("gateway"));
    response
}
