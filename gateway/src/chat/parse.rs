//! Reads the body within its limits, scans it once, and names the session.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chat_wire::scan::{self, ChatScan};
use http::{HeaderMap, Response, Uri};
use http_body::Body;
use http_body_util::BodyExt as _;
use routing_policies::SessionKey;
use routing_policies::prefix::Chain;
use routing_policies::session::identify;
use tokio::time::timeout;
use tower::{Layer, Service};

use super::prompt::{Prompt, prompt};
use crate::config::Limits;
use crate::failure::Failure;
use crate::layers::Answer;
use crate::layers::observe::{Arrived, Record};
use crate::reply::ReplyBody;
use crate::state::Known;
use crate::state::policy::PolicyInUse;

/// Room made for a body at once, in bytes. What a client announces beyond this is believed as it arrives.
const BODY_ROOM_BYTES_MAX: usize = 4 << 20;
/// The tenant of every request, until clients are told apart.
pub(super) const TENANT: &str = "";

/// A chat request, understood as far as routing needs it.
#[derive(Debug)]
pub struct ChatCall {
    /// The path with its query.
    pub uri: Uri,
    /// The client's headers.
    pub headers: HeaderMap,
    /// The client's own bytes.
    pub body: Bytes,
    /// What the scan found in them.
    pub scan: ChatScan,
    /// The session, where the client names one.
    pub session: Option<SessionKey>,
    /// The conversation's prefix keys.
    pub chain: Chain,
    /// What goes out in place of its tools, where the policy wants them written otherwise.
    pub tools: Option<Bytes>,
    /// The policy that was in use as it arrived; a reload does not change it on the way.
    pub policy: Arc<PolicyInUse>,
    /// Where the stages note what happens.
    pub record: Arc<Record>,
}

/// Makes [`Parse`].
#[derive(Clone, Debug)]
pub struct ParseLayer {
    known: Arc<Known>,
    limits: Limits,
    body_time: Duration,
}

impl ParseLayer {
    /// Reads bodies within `limits` and `body_time`.
    #[must_use]
    pub fn new(known: Arc<Known>, limits: Limits, body_time: Duration) -> Self {
        Self {
            known,
            limits,
            body_time,
        }
    }
}

impl<S> Layer<S> for ParseLayer {
    type Service = Parse<S>;

    fn layer(&self, inner: S) -> Parse<S> {
        Parse {
            inner,
            layer: self.clone(),
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Parse<S> {
    inner: S,
    layer: ParseLayer,
}

impl<S, B> Service<Arrived<B>> for Parse<S>
where
    S: Service<ChatCall, Response = Response<ReplyBody>, Error = Failure> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<ReplyBody>;
    type Error = Failure;
    type Future = Answer<Response<ReplyBody>, Failure>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, arrived: Arrived<B>) -> Self::Future {
        let Arrived { request, record } = arrived;
        let (mut inner, layer) = (self.inner.clone(), self.layer.clone());
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let reading = read(body, layer.limits.body_bytes_max);
            let after = layer.body_time;
            let body = timeout(after, reading)
                .await
                .unwrap_or(Err(Failure::BodySlow { after }))?;
            let call = understand(&layer.known, head.uri, head.headers, body, record)?;
            inner.call(call).await
        })
    }
}

/// The whole body. A length that is announced is refused before any of it is read; one that is not is counted.
async fn read<B: Body<Data = Bytes>>(body: B, limit: usize) -> Result<Bytes, Failure> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(Failure::BodyTooLarge { limit });
    }
    let mut body = pin!(body);
    // Most bodies arrive in one piece, which is then used as it is.
    let Some(first) = next(&mut body).await? else {
        return Ok(Bytes::new());
    };
    if first.len() > limit {
        return Err(Failure::BodyTooLarge { limit });
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let Some(second) = next(&mut body).await? else {
        return Ok(first);
    };
    let mut whole = BytesMut::with_capacity(announced.clamp(first.len(), BODY_ROOM_BYTES_MAX));
    whole.extend_from_slice(&first);
    let mut piece = Some(second);
    while let Some(bytes) = piece {
        if bytes.len() > limit - whole.len() {
            return Err(Failure::BodyTooLarge { limit });
        }
        whole.extend_from_slice(&bytes);
        piece = next(&mut body).await?;
    }
    Ok(whole.freeze())
}

async fn next<B: Body<Data = Bytes>>(
    body: &mut std::pin::Pin<&mut B>,
) -> Result<Option<Bytes>, Failure> {
    match body.frame().await {
        Some(Ok(frame)) => Ok(Some(frame.into_data().unwrap_or_default())),
        Some(Err(_)) => Err(Failure::BodyCut),
        None => Ok(None),
    }
}

fn understand(
    known: &Known,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
    record: Arc<Record>,
) -> Result<ChatCall, Failure> {
    let policy = known.policy.current();
    let scan = scan::chat(&body, policy.body_paths()).map_err(|error| Failure::BadBody {
        message: error.to_string(),
    })?;
    let model = scan.model.as_deref().unwrap_or_default();
    let header = |name: &str| headers.get(name).map(http::HeaderValue::as_bytes);
    let session = identify(
        &policy.policy().session,
        TENANT,
        model,
        header,
        &scan.strings,
    )
    .session;
    known
        .metrics
        .session_source(session.map_or("none", |(_, source)| source.as_str()));
    let facts = policy.model(model);
    let family = facts.told.as_ref().or(facts.by_name.as_ref());
    let Prompt { chain, tools } = prompt(
        policy.policy(),
        TENANT,
        &scan,
        &body,
        family.map(|family| &**family),
    );
    let session = session.map(|(key, _)| key);
    Ok(ChatCall {
        uri,
        headers,
        body,
        scan,
        session,
        chain,
        tools,
        policy,
        record,
    })
}
