//! The only place that turns a failure into a response. Below it everything is a `Result`; above it, a response.

use std::convert::Infallible;
use std::task::{Context, Poll};

use chat_wire::error::ErrorBody;
use http::Response;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use std::sync::Arc;
use tower::{Layer, Service};

use super::Answer;
use super::observe::Arrived;
use crate::chat::relay::{X_PINION_LANE, X_PINION_REASON, X_PINION_REPLICA};
use crate::failure::Failure;
use crate::reply::ReplyBody;
use crate::state::Known;

/// Makes [`Rescue`].
#[derive(Clone, Debug)]
pub struct RescueLayer {
    known: Arc<Known>,
}

impl RescueLayer {
    /// Counts failures in the series of `known`.
    #[must_use]
    pub fn new(known: Arc<Known>) -> Self {
        Self { known }
    }
}

impl<S> Layer<S> for RescueLayer {
    type Service = Rescue<S>;

    fn layer(&self, inner: S) -> Rescue<S> {
        Rescue {
            inner,
            known: self.known.clone(),
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Rescue<S> {
    inner: S,
    known: Arc<Known>,
}

impl<S, B> Service<Arrived<B>> for Rescue<S>
where
    S: Service<Arrived<B>, Response = Response<ReplyBody>, Error = Failure>,
    S::Future: Send + 'static,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Answer<Response<ReplyBody>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Everything below is always ready and says no in its call.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, arrived: Arrived<B>) -> Self::Future {
        let (record, known) = (arrived.record.clone(), self.known.clone());
        let answer = self.inner.call(arrived);
        Box::pin(async move {
            let failure = match answer.await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            let row = failure.row();
            record.ended(row.outcome);
            known.metrics.failure(row.code);
            Ok(response(&failure))
        })
    }
}

/// OpenAI's error body under the failure's status.
fn response(failure: &Failure) -> Response<ReplyBody> {
    let row = failure.row();
    let message = failure.to_string();
    let body = ErrorBody {
        message: &message,
        kind: row.kind,
        param: failure.param(),
        code: Some(row.code),
    };
    let mut response = Response::new(ReplyBody::whole(body.to_json()));
    *response.status_mut() = row.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(X_PINION_REASON, HeaderValue::from_static(row.code));
    let replica = failure
        .replica()
        .and_then(|name| HeaderValue::from_str(name).ok());
    headers.insert(
        X_PINION_REPLICA,
        replica.unwrap_or(HeaderValue::from_static("none")),
    );
    if let Some(seconds) = row.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Failure::NoReplicaInPool { lane, .. } = failure
        && let Ok(lane) = HeaderValue::from_str(lane)
    {
        headers.insert(X_PINION_LANE, lane);
    }
    if let Failure::MethodNotAllowed { allowed } = failure {
        headers.insert(ALLOW, HeaderValue::from_static(allowed));
    }
    response
}
