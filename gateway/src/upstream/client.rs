//! One attempt at one replica: a kept connection where there is one, else a new one, within the time limits.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::HOST;
use http::{HeaderMap, Method, Request, Response, Uri, response};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::body::{UpstreamBody, words};
use super::connect::Connect;
use super::link::Link;
use crate::config::Timeouts;
use crate::failure::Failure;
use crate::metrics::AttemptResult;
use crate::state::replicas::Replica;

/// Bytes of an answer to a probe; the model lists of real engines are a few KiB.
const PROBE_BYTES_MAX: usize = 1 << 20;

/// Sends requests to replicas.
pub struct Client {
    connect: Box<dyn Connect>,
    timeouts: Timeouts,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// What goes to a replica, ready to be sent more than once.
#[derive(Clone, Debug)]
pub struct UpstreamCall {
    /// The path with its query.
    pub uri: Uri,
    /// End-to-end headers, without `host`.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl UpstreamCall {
    fn request(&self, replica: &Replica) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
            .headers_mut()
            .insert(HOST, replica.host_header().clone());
        request
    }
}

impl Client {
    /// A client over `connect`.
    #[must_use]
    pub fn new(connect: Box<dyn Connect>, timeouts: Timeouts) -> Self {
        Self { connect, timeouts }
    }

    /// Sends a request and waits for the head of the answer.
    ///
    /// # Errors
    /// [`Failure::Connect`], [`Failure::Reset`] or [`Failure::FirstByteTimeout`]: no byte of an answer was seen.
    pub async fn call(
        &self,
        replica: &Arc<Replica>,
        call: &UpstreamCall,
    ) -> Result<(response::Parts, UpstreamBody), Failure> {
        let mut timer = Box::pin(sleep(self.timeouts.first_byte));
        let metrics = replica.metrics();
        if let Some(mut link) = replica.pool().take().await {
            match self.exchange(replica, &mut link, call, &mut timer).await {
                Ok(response) => return Ok(self.answered(replica, response, link, timer)),
                // The replica closed the kept connection while the request was on its way. That says nothing
                // about the replica, so the same one is asked again, once, on a new connection.
                Err(Failure::Reset { .. }) => metrics.attempt(AttemptResult::StaleConnection),
                Err(failure) => return Err(failure),
            }
        }
        let mut link = self.open(replica).await.inspect_err(|_| {
            metrics.attempt(AttemptResult::Unreachable);
        })?;
        let sent = self.exchange(replica, &mut link, call, &mut timer).await;
        let response = sent.inspect_err(|failure| {
            if matches!(failure, Failure::Reset { .. }) {
                metrics.attempt(AttemptResult::Reset);
            }
        })?;
        Ok(self.answered(replica, response, link, timer))
    }

    async fn exchange(
        &self,
        replica: &Replica,
        link: &mut Link,
        call: &UpstreamCall,
        timer: &mut Pin<Box<Sleep>>,
    ) -> Result<Response<Incoming>, Failure> {
        tokio::select! {
            biased;
            answer = link.exchange(call.request(replica)) => answer.map_err(|error| {
                Failure::Reset { replica: replica.name().clone(), cause: words(&error) }
            }),
            () = timer => {
                replica.metrics().attempt(AttemptResult::Timeout);
                let after = self.timeouts.first_byte;
                Err(Failure::FirstByteTimeout { replica: replica.name().clone(), after })
            }
        }
    }

    fn answered(
        &self,
        replica: &Arc<Replica>,
        response: Response<Incoming>,
        link: Link,
        timer: Pin<Box<Sleep>>,
    ) -> (response::Parts, UpstreamBody) {
        let (parts, incoming) = response.into_parts();
        let body = UpstreamBody::new(incoming, link, replica.clone(), self.timeouts.idle, timer);
        (parts, body)
    }

    async fn open(&self, replica: &Replica) -> Result<Link, Failure> {
        let connecting = async {
            let stream = self.connect.connect(replica.authority()).await;
            let stream = stream.map_err(|error| error.to_string())?;
            Link::open(stream).await.map_err(|error| words(&error))
        };
        let limit = self.timeouts.connect;
        let opened = timeout(limit, connecting)
            .await
            .unwrap_or_else(|_| Err(format!("no connection within {} s", limit.as_secs_f32())));
        opened.map_err(|cause| Failure::Connect {
            replica: replica.name().clone(),
            cause,
        })
    }

    /// One GET on a connection of its own, whole within `limit`: a probe also asks whether the replica accepts.
    ///
    /// # Errors
    /// What failed on the way.
    pub async fn probe(
        &self,
        replica: &Replica,
        path: &'static str,
        limit: Duration,
    ) -> Result<(http::StatusCode, Bytes), ProbeError> {
        let asking = async {
            let mut link = self
                .open(replica)
                .await
                .map_err(|failure| ProbeError::Unreachable(failure.to_string()))?;
            let mut request = Request::new(Full::default());
            *request.uri_mut() = Uri::from_static(path);
            request
                .headers_mut()
                .insert(HOST, replica.host_header().clone());
            let response = link
                .exchange(request)
                .await
                .map_err(|error| ProbeError::Failed(words(&error)))?;
            let (parts, mut incoming) = response.into_parts();
            let mut whole = BytesMut::new();
            while let Some(frame) = poll_fn(|cx| link.poll_frame(&mut incoming, cx)).await {
                let frame = frame.map_err(|error| ProbeError::Failed(words(&error)))?;
                whole.extend_from_slice(&frame.into_data().unwrap_or_default());
                if whole.len() > PROBE_BYTES_MAX {
                    let why = format!("the answer is larger than {PROBE_BYTES_MAX} bytes");
                    return Err(ProbeError::Failed(why));
                }
            }
            Ok((parts.status, whole.freeze()))
        };
        let start = Instant::now();
        timeout(limit, asking).await.unwrap_or_else(|_| {
            Err(ProbeError::Failed(format!(
                "no answer within {} ms",
                start.elapsed().as_millis()
            )))
        })
    }
}

/// Why a probe has no answer.
#[derive(Debug)]
pub enum ProbeError {
    /// No connection: nobody listens.
    Unreachable(String),
    /// Anything after that.
    Failed(String),
}

impl std::fmt::Display for ProbeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Unreachable(why) | Self::Failed(why)) = self;
        f.write_str(why)
    }
}
