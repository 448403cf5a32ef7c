//! Tries the candidates in order until one has sent the first byte of an answer. After that byte there is no other
//! try: the client may have seen a part of the answer, and no second answer begins in the same place.

use std::sync::Arc;
use std::task::{Context, Poll};

use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tower::Service;

use super::reasoning::{Prepared, Split};
use super::relay::{self, X_PINION_LANE, X_PINION_LANE_REASON, X_PINION_THINKING_BUDGET};
use super::route::{Remember, RoutedCall};
use crate::failure::Failure;
use crate::layers::Answer;
use crate::metrics::AttemptResult;
use crate::reply::ReplyBody;
use crate::state::Known;
use crate::state::breaker::Went;
use crate::state::gate::Try;
use crate::state::replicas::Replica;
use crate::state::sent::Sent;
use crate::upstream::client::Client;

/// See the module.
#[derive(Clone, Debug)]
pub struct Attempt {
    known: Arc<Known>,
    client: Arc<Client>,
}

impl Attempt {
    /// Sends through `client` and remembers in `known`.
    #[must_use]
    pub fn new(known: Arc<Known>, client: Arc<Client>) -> Self {
        Self { known, client }
    }
}

impl Service<RoutedCall> for Attempt {
    type Response = Response<ReplyBody>;
    type Error = Failure;
    type Future = Answer<Response<ReplyBody>, Failure>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, routed: RoutedCall) -> Self::Future {
        let (known, client) = (self.known.clone(), self.client.clone());
        Box::pin(attempt(known, client, routed))
    }
}

async fn attempt(
    known: Arc<Known>,
    client: Arc<Client>,
    routed: RoutedCall,
) -> Result<Response<ReplyBody>, Failure> {
    let RoutedCall {
        call,
        candidates,
        reason,
        lane,
        placed,
        remember,
        stream,
        reasoning,
        record,
    } = routed;
    let mut last = Failure::NoReplica;
    for (tried, replica) in candidates.iter().enumerate() {
        let is_last = tried + 1 == candidates.len();
        record.at(replica);
        let Prepared {
            call: own,
            plan,
            budget,
            cut,
            gather,
        } = reasoning.prepare(replica, &call)?;
        let sent = Sent::new(&known, replica, &placed, tried > 0);
        let trying = Try::new(replica);
        let result = client.call(replica, own.as_ref().unwrap_or(&call)).await;
        trying.ended(match &result {
            Ok((parts, _)) => went(parts.status, replica),
            Err(_) => Went::Badly,
        });
        match result {
            Ok((parts, _)) if is_refusal(parts.status) && !is_last => {
                replica.metrics().attempt(AttemptResult::Refused);
            }
            Ok((parts, body)) => {
                replica.metrics().attempt(AttemptResult::Answered);
                if parts.status.is_success() {
                    keep(&known, remember, replica);
                }
                let reason = reason.as_str();
                let answer = relay::Answering {
                    sent,
                    reason,
                    stream,
                    split: plan.map(|plan| Split::new(plan, budget, cut, (&client, replica))),
                    gather,
                    record,
                };
                let mut reply = relay::reply(parts, body, answer).await?;
                tell(reply.headers_mut(), lane, budget);
                return Ok(reply);
            }
            Err(failure) => {
                if let Failure::Connect { cause, .. } = &failure {
                    replica.on_unreachable(cause);
                }
                if !failure.row().retryable {
                    return Err(failure);
                }
                last = failure;
            }
        }
        if !is_last {
            replica.metrics().failovers.inc();
        }
    }
    Err(last)
}

/// Which lane the request took and why, and how long its model may think.
fn tell(headers: &mut HeaderMap, lane: Option<(HeaderValue, &'static str)>, budget: Option<u64>) {
    if let Some((lane, reason)) = lane {
        headers.insert(X_PINION_LANE, lane);
        headers.insert(X_PINION_LANE_REASON, HeaderValue::from_static(reason));
    }
    if let Some(tokens) = budget {
        headers.insert(X_PINION_THINKING_BUDGET, tokens.into());
    }
}

/// A replica that has no room, or a proxy before one that is gone. The last candidate's refusal is passed on.
fn is_refusal(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE
    )
}

/// Whether an answer with this status speaks for the replica. A 503 while others are there too may only say that it has no room.
fn went(status: StatusCode, replica: &Replica) -> Went {
    match status {
        StatusCode::SERVICE_UNAVAILABLE if replica.in_flight() > 1 => Went::Unknown,
        status if status.is_server_error() => Went::Badly,
        _ => Went::Well,
    }
}

/// Remembers who answered.
fn keep(known: &Known, remember: Remember, replica: &Replica) {
    let Ok(index) = u16::try_from(replica.index()) else {
        return;
    };
    if let Some(session) = remember.session {
        known.sessions.put(session, index);
    }
    if let Some(prefix) = remember.prefix {
        known.prefixes.put(prefix, index);
    }
}
