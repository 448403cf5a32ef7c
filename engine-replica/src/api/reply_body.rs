//! The bodies that leave this server.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

use super::reply::StreamBody;
use crate::engine::stream::JobStream;

/// A body that is all there, or one that follows the engine.
pub(crate) enum ReplyBody {
    /// All there.
    Whole(Full<Bytes>),
    /// Follows the engine; boxed because it is many times the other's size.
    Stream(Box<StreamBody<JobStream>>),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            ReplyBody::Whole(body) => Pin::new(body).poll_frame(cx),
            ReplyBody::Stream(body) => Pin::new(body.as_mut()).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Whole(body) => body.is_end_stream(),
            ReplyBody::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Whole(body) => body.size_hint(),
            ReplyBody::Stream(body) => body.size_hint(),
        }
    }
}

/// A JSON response.
pub(crate) fn json(status: StatusCode, body: Bytes) -> Response<ReplyBody> {
    typed(status, "application/json", body)
}

/// A response of any type that is all there.
pub(crate) fn typed(status: StatusCode, kind: &'static str, body: Bytes) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Whole(Full::new(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A stream of server-sent events: never cached, never held back to fill a buffer.
pub(crate) fn events(body: StreamBody<JobStream>) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Stream(Box::new(body)));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
