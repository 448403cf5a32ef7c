//! Refuses what the policy's `[limits]` do not take: prompts that are too long, and one session's requests beyond so many at a time. The
//! session's seat rides in the body of the answer.

use std::sync::Arc;
use std::task::{Context, Poll};

use http::Response;
use tower::{Layer, Service};

use super::parse::ChatCall;
use crate::failure::Failure;
use crate::layers::Answer;
use crate::reply::ReplyBody;
use crate::state::Known;
use crate::state::seats::Seat;

/// Makes [`Limit`].
#[derive(Clone, Debug)]
pub struct LimitLayer {
    known: Arc<Known>,
}

impl LimitLayer {
    /// Counts sessions in `known`.
    #[must_use]
    pub fn new(known: Arc<Known>) -> Self {
        Self { known }
    }
}

impl<S> Layer<S> for LimitLayer {
    type Service = Limit<S>;

    fn layer(&self, inner: S) -> Limit<S> {
        Limit {
            inner,
            known: self.known.clone(),
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Limit<S> {
    inner: S,
    known: Arc<Known>,
}

impl<S> Service<ChatCall> for Limit<S>
where
    S: Service<ChatCall, Response = Response<ReplyBody>, Error = Failure>,
    S: Service<ChatCall, Future = Answer<Response<ReplyBody>, Failure>>,
{
    type Response = Response<ReplyBody>;
    type Error = Failure;
    type Future = Answer<Response<ReplyBody>, Failure>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ChatCall) -> Self::Future {
        let seat = match within(&self.known, &call) {
            Ok(seat) => seat,
            Err(failure) => return Box::pin(std::future::ready(Err(failure))),
        };
        let answer = self.inner.call(call);
        let Some(seat) = seat else {
            return answer;
        };
        Box::pin(async move {
            let mut response = answer.await?;
            response.body_mut().keep_seat(seat);
            Ok(response)
        })
    }
}

/// The session's seat, where the policy counts them and something names the session: conversations that are only recognised by what they
/// say may be strangers' who ask the same.
fn within(known: &Known, call: &ChatCall) -> Result<Option<Seat>, Failure> {
    let limits = call.policy.policy().limits;
    let bytes = call.chain.bytes();
    let limit = limits.prompt_bytes_max;
    if limit > 0 && bytes > u64::from(limit) {
        return Err(Failure::PromptTooLong { bytes, limit });
    }
    let limit = limits.in_flight_per_session;
    match call.session {
        Some(session) if limit > 0 => {
            let seat = known.seats.take(session, limit);
            seat.map(Some).ok_or(Failure::SessionBusy { limit })
        }
        _ => Ok(None),
    }
}
