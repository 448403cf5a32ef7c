//! Names each request: the client's own id where it is sane, else a new one; sent on and sent back.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use http::header::{HeaderName, HeaderValue};
use http::{Request, Response};
use tower::{Layer, Service};

use super::Answer;

/// The header that carries the id, in both directions.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A longer id from a client is replaced: ids end up in logs.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Makes [`RequestId`].
#[derive(Clone, Debug)]
pub struct RequestIdLayer {
    ids: Arc<Ids>,
}

/// Ids that no other process makes: a random word of this one, and a count.
#[derive(Debug)]
struct Ids {
    process: u64,
    next: AtomicU64,
}

impl Default for RequestIdLayer {
    fn default() -> Self {
        // The standard library's hash seeds are the randomness at hand, and all that a name needs.
        let process = RandomState::new().hash_one(std::process::id());
        Self {
            ids: Arc::new(Ids {
                process,
                next: AtomicU64::new(0),
            }),
        }
    }
}

impl Ids {
    fn make(&self) -> HeaderValue {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let id = format!("req-{:016x}-{count:x}", self.process);
        HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("req-unnamed"))
    }
}

impl<S> Layer<S> for RequestIdLayer {
    type Service = RequestId<S>;

    fn layer(&self, inner: S) -> RequestId<S> {
        RequestId {
            inner,
            ids: self.ids.clone(),
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct RequestId<S> {
    inner: S,
    ids: Arc<Ids>,
}

impl<S, B, R> Service<Request<B>> for RequestId<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Answer<Response<R>, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let kept = request
            .headers()
            .get(X_REQUEST_ID)
            .filter(|id| is_sane(id))
            .cloned();
        let id = kept.unwrap_or_else(|| {
            let id = self.ids.make();
            request.headers_mut().insert(X_REQUEST_ID, id.clone());
            id
        });
        let answer = self.inner.call(request);
        Box::pin(async move {
            let mut response = answer.await?;
            response.headers_mut().insert(X_REQUEST_ID, id);
            Ok(response)
        })
    }
}

fn is_sane(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (1..=REQUEST_ID_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use tower_test::mock;

    use super::*;

    /// The id that goes in and the one that comes out, where the inner service sees the same.
    async fn through(client: Option<&str>) -> String {
        let layer = tower::layer::layer_fn(|inner| {
            let seen = tower::util::MapRequest::new(inner, |request: Request<()>| {
                request.headers()[X_REQUEST_ID].to_str().unwrap().to_owned()
            });
            RequestIdLayer::default().layer(seen)
        });
        let (mut service, mut handle) = mock::spawn_layer::<String, Response<()>, _>(layer);
        let mut request = Request::new(());
        if let Some(id) = client {
            request
                .headers_mut()
                .insert(X_REQUEST_ID, id.parse().unwrap());
        }
        tokio_test::assert_ready_ok!(service.poll_ready());
        let answer = service.call(request);
        let (seen, send) = handle.next_request().await.unwrap();
        send.send_response(Response::new(()));
        let response = answer.await.unwrap();
        assert_eq!(response.headers()[X_REQUEST_ID], seen.as_str());
        seen
    }

    #[tokio::test]
    async fn a_sane_id_is_kept_and_others_are_replaced() {
        assert_eq!(through(Some("abc-1")).await, "abc-1");
        for odd in ["", "two words", &"x".repeat(129), "tab\there"] {
            assert!(through(Some(odd)).await.starts_with("req-"), "{odd}");
        }
        assert_ne!(through(None).await, through(None).await);
    }

    #[tokio::test]
    async fn an_error_below_passes() {
        let (mut service, mut handle) =
            mock::spawn_layer::<Request<()>, Response<()>, _>(RequestIdLayer::default());
        tokio_test::assert_ready_ok!(service.poll_ready());
        let answer = service.call(Request::new(()));
        let (_, send) = handle.next_request().await.unwrap();
        send.send_error("no");
        assert_eq!(answer.await.unwrap_err().to_string(), "no");
    }
}
