//! The OpenAI-compatible HTTP interface, from a request to a response and nothing below that.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body::Body;
use replica_core::text_stream::TokenText;
use tokio::time::Instant;

use crate::engine::handle::EngineHandle;
use crate::failure::Failure;
use crate::metrics::{Constants, Metrics};

mod body;
mod chat;
mod format;
mod hints;
mod ids;
mod job;
mod reply;
mod reply_body;
pub mod request;
mod rescue;
mod state;
#[cfg(test)]
mod tests;

pub use format::ChatFormat;
pub use job::SamplingDefaults;
pub(crate) use reply_body::ReplyBody;

/// Where a request's name is read and written.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest name that is taken over from a client, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;
/// Longest piece of an unknown path that is repeated to the client, in characters.
const PATH_SHOWN_CHARS_MAX: usize = 128;

/// What this replica serves, fixed at start.
#[derive(Clone, Debug)]
pub struct Served {
    /// The id that clients name.
    pub model: Arc<str>,
    /// The replica's own name.
    pub name: String,
    /// What computes, for people.
    pub device: String,
    /// Random per start.
    pub instance: String,
    /// Tokens that prompt and answer share.
    pub context_max: usize,
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// Tokens that end an answer.
    pub eos: Vec<u32>,
    /// What a request leaves open.
    pub defaults: SamplingDefaults,
    /// Whether KV is reused between requests.
    pub prefix_cache: bool,
    /// Whether what headers say of sessions, tenants and priority is believed.
    pub trust_hints: bool,
}

impl Served {
    /// A name for one run of the process.
    pub fn new_instance() -> String {
        ids::Ids::new().name("")
    }
}

/// Answers requests.
pub struct Api {
    engine: EngineHandle,
    format: Arc<dyn ChatFormat>,
    vocabulary: Arc<dyn TokenText>,
    served: Served,
    metrics: Arc<Metrics>,
    ids: ids::Ids,
    /// Seconds since 1970.
    started: u64,
}

impl Api {
    /// An API over a running engine.
    ///
    /// # Errors
    /// When the metrics cannot be registered.
    pub fn new(
        engine: EngineHandle,
        format: Arc<dyn ChatFormat>,
        vocabulary: Arc<dyn TokenText>,
        served: Served,
    ) -> Result<Api, prometheus::Error> {
        let metrics = Metrics::new(&Constants {
            model: &served.model,
            name: &served.name,
            instance: &served.instance,
            device: &served.device,
            prefix_cache: served.prefix_cache,
            expert_load: engine.expert_load(),
        })?;
        Ok(Api {
            engine,
            format,
            vocabulary,
            served,
            metrics: Arc::new(metrics),
            ids: ids::Ids::new(),
            started: chat::seconds_since_1970(),
        })
    }

    /// The engine behind it.
    pub fn engine(&self) -> &EngineHandle {
        &self.engine
    }

    /// Answers one request; a failure becomes a response here and nowhere deeper.
    pub(crate) async fn handle<B>(self: Arc<Self>, request: Request<B>) -> Response<ReplyBody>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let arrived = Instant::now();
        let id = self.request_id(&request);
        let mut response = match self.route(request, arrived).await {
            Ok(response) => response,
            Err(failure) => {
                let code = failure.row().code;
                self.metrics.count_refused(code);
                tracing::debug!(request_id = ?id, code, "refused: {}", failure.message());
                rescue::response(&failure)
            }
        };
        response.headers_mut().insert(REQUEST_ID, id);
        response
    }

    async fn route<B>(
        self: &Arc<Self>,
        request: Request<B>,
        arrived: Instant,
    ) -> Result<Response<ReplyBody>, Failure>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let takes = |method: &Method, allow: &'static str| {
            if request.method() == method {
                Ok(())
            } else {
                Err(Failure::MethodNotAllowed { allow })
            }
        };
        match request.uri().path() {
            "/v1/chat/completions" => {
                takes(&Method::POST, "POST")?;
                chat::chat(self, request, arrived).await
            }
            "/v1/models" => takes(&Method::GET, "GET").map(|()| state::models(self)),
            "/health" => takes(&Method::GET, "GET").map(|()| state::health(self)),
            "/metrics" => {
                takes(&Method::GET, "GET")?;
                state::metrics(self)
            }
            "/reset_prefix_cache" => {
                takes(&Method::POST, "POST").map(|()| state::reset_prefix_cache(self))
            }
            "/sessions/keep" => {
                takes(&Method::POST, "POST")?;
                hints::keep(self, request).await
            }
            "/sessions/release" => {
                takes(&Method::POST, "POST")?;
                hints::release(self, request).await
            }
            other => Err(Failure::NoRoute(
                other.chars().take(PATH_SHOWN_CHARS_MAX).collect(),
            )),
        }
    }

    /// The client's own name for the request where it is short and plain, else a new one.
    fn request_id<B>(&self, request: &Request<B>) -> HeaderValue {
        let plain = |value: &&HeaderValue| {
            (1..=REQUEST_ID_BYTES_MAX).contains(&value.len())
                && value.as_bytes().iter().all(u8::is_ascii_graphic)
        };
        match request.headers().get(REQUEST_ID).filter(plain) {
            Some(value) => value.clone(),
            None => HeaderValue::from_str(&self.ids.name("req-"))
                .unwrap_or_else(|_| HeaderValue::from_static("req-unnamed")),
        }
    }
}
