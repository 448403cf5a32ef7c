//! Takes in so many chat requests and no more. A permit rides in the body of the answer and is given back when
//! that is dropped, so every ending frees it. Above the bound the answer is 503 with Retry-After, at once: a queue
//! here would only hide from the client that it should go elsewhere.

use std::sync::Arc;
use std::task::{Context, Poll};

use http::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{Layer, Service};

use super::Answer;
use super::observe::Arrived;
use crate::failure::Failure;
use crate::reply::ReplyBody;
use crate::state::Known;

/// One admitted request.
#[derive(Debug)]
pub struct Permit {
    _room: OwnedSemaphorePermit,
    known: Arc<Known>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.known.metrics.admitted().dec();
    }
}

/// Makes [`Admit`].
#[derive(Clone, Debug)]
pub struct AdmitLayer {
    room: Arc<Semaphore>,
    limit: usize,
    known: Arc<Known>,
}

impl AdmitLayer {
    /// Room for `limit` requests.
    #[must_use]
    pub fn new(limit: usize, known: Arc<Known>) -> Self {
        Self {
            room: Arc::new(Semaphore::new(limit)),
            limit,
            known,
        }
    }
}

impl<S> Layer<S> for AdmitLayer {
    type Service = Admit<S>;

    fn layer(&self, inner: S) -> Admit<S> {
        Admit {
            inner,
            layer: self.clone(),
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Admit<S> {
    inner: S,
    layer: AdmitLayer,
}

impl<S, B> Service<Arrived<B>> for Admit<S>
where
    S: Service<Arrived<B>, Response = Response<ReplyBody>, Error = Failure>,
    S::Future: Send + 'static,
{
    type Response = Response<ReplyBody>;
    type Error = Failure;
    type Future = Answer<Response<ReplyBody>, Failure>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, arrived: Arrived<B>) -> Self::Future {
        let AdmitLayer { room, limit, known } = &self.layer;
        let Ok(room) = room.clone().try_acquire_owned() else {
            return Box::pin(std::future::ready(Err(Failure::Overloaded {
                limit: *limit,
            })));
        };
        known.metrics.admitted().inc();
        let permit = Permit {
            _room: room,
            known: known.clone(),
        };
        let answer = self.inner.call(arrived);
        Box::pin(async move {
            let mut response = answer.await?;
            response.body_mut().keep_permit(permit);
            Ok(response)
        })
    }
}
