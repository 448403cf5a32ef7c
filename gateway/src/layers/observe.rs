//! Counts each request once, when the last part of it is gone: its answer has ended, failed or been dropped. A
//! stream is not done at its headers, and a client that leaves during the prefill leaves no answer at all.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response};
use routing_policies::prefix::Place;
use tokio::time::Instant;
use tower::{Layer, Service};

use super::Answer;
use super::request_id::X_REQUEST_ID;
use crate::metrics::Outcome;
use crate::reply::ReplyBody;
use crate::state::Known;
use crate::state::replicas::Replica;

/// No replica yet.
const NOBODY: usize = usize::MAX;
/// No outcome yet: if it stays so, the client left.
const OPEN: u8 = u8::MAX;

/// What is noted of one request while it lives. Shared by the stages of the request and the body of its answer;
/// the last to let go of it writes it down.
#[derive(Debug)]
pub struct Record {
    known: Arc<Known>,
    id: Option<HeaderValue>,
    started: Instant,
    replica: AtomicUsize,
    outcome: AtomicU8,
    changed: OnceLock<(Place, &'static str)>,
}

impl Record {
    /// A record that starts now.
    #[must_use]
    pub fn new(known: Arc<Known>, id: Option<HeaderValue>) -> Arc<Self> {
        Arc::new(Self {
            known,
            id,
            started: Instant::now(),
            replica: AtomicUsize::new(NOBODY),
            outcome: AtomicU8::new(OPEN),
            changed: OnceLock::new(),
        })
    }

    /// When the request arrived.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The replica that is asked now.
    pub fn at(&self, replica: &Replica) {
        self.replica.store(replica.index(), Ordering::Relaxed);
    }

    /// The session's prompt is no continuation of what it sent before: `first` is where the first block begins that its replica
    /// does not know, `part` the role of that message or `tools`.
    pub fn changed(&self, first: Place, part: &'static str) {
        let _ = self.changed.set((first, part));
    }

    /// How the request ended. The first word counts: an answer that was complete stays so when the client goes.
    pub fn ended(&self, outcome: Outcome) {
        let (open, outcome) = (OPEN, outcome as u8);
        let _ = self
            .outcome
            .compare_exchange(open, outcome, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let outcome = Outcome::from_index(*self.outcome.get_mut()).unwrap_or(Outcome::ClientClosed);
        let took = self.started.elapsed();
        let replica = self.known.fleet.replicas().get(*self.replica.get_mut());
        match replica {
            Some(replica) => replica.metrics().ended(outcome, took),
            None => self.known.metrics.unrouted(outcome),
        }
        let changed = self.changed.get();
        tracing::debug!(
            id = self.id.as_ref().and_then(|id| id.to_str().ok()),
            replica = replica.map_or("none", |replica| &**replica.name()),
            outcome = outcome.as_str(),
            ms = took.as_millis(),
            changed_part = changed.map(|(_, part)| part),
            changed_message = changed.and_then(|(place, _)| place.message),
            changed_byte = changed.map(|(place, _)| place.byte),
            "request ended"
        );
    }
}

/// A request with its record.
#[derive(Debug)]
pub struct Arrived<B> {
    /// The request as it came, with an id.
    pub request: Request<B>,
    /// Where its stages note what happens.
    pub record: Arc<Record>,
}

/// Makes [`Observe`].
#[derive(Clone, Debug)]
pub struct ObserveLayer {
    known: Arc<Known>,
}

impl ObserveLayer {
    /// Notes into the series of `known`.
    #[must_use]
    pub fn new(known: Arc<Known>) -> Self {
        Self { known }
    }
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Observe<S> {
        Observe {
            inner,
            known: self.known.clone(),
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Observe<S> {
    inner: S,
    known: Arc<Known>,
}

impl<S, B> Service<Request<B>> for Observe<S>
where
    S: Service<Arrived<B>, Response = Response<ReplyBody>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Answer<Response<ReplyBody>, Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let id = request.headers().get(X_REQUEST_ID).cloned();
        let record = Record::new(self.known.clone(), id);
        let answer = self.inner.call(Arrived {
            request,
            record: record.clone(),
        });
        Box::pin(async move {
            let mut response = answer.await?;
            // From here on the body keeps the record open.
            response.body_mut().keep_record(record);
            Ok(response)
        })
    }
}
