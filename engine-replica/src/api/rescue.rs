//! The only place where a `Failure` becomes a response (A5).

use bytes::Bytes;
use chat_wire::error::ErrorBody;
use http::{HeaderValue, Response, header};

use super::reply_body::{ReplyBody, json};
use crate::failure::Failure;

/// The response that tells a client of `failure`.
pub(crate) fn response(failure: &Failure) -> Response<ReplyBody> {
    let row = failure.row();
    let body = with_body(failure, |body| body.to_json());
    let mut response = json(row.status, body);
    let headers = response.headers_mut();
    if let Some(seconds) = row.retry_after_s {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Failure::MethodNotAllowed { allow } = failure {
        headers.insert(header::ALLOW, HeaderValue::from_static(allow));
    }
    // What is left of these bodies is not read, so the connection cannot carry another request.
    if matches!(
        failure,
        Failure::BodyTooLarge { .. } | Failure::BodyTimeout | Failure::BodyCut
    ) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The same inside a stream whose status line has gone out.
pub(crate) fn event(failure: &Failure) -> Bytes {
    with_body(failure, |body| body.to_event())
}

fn with_body(failure: &Failure, write: impl Fn(&ErrorBody<'_>) -> Bytes) -> Bytes {
    let row = failure.row();
    let message = failure.message();
    write(&ErrorBody {
        message: &message,
        kind: row.kind,
        param: failure.param(),
        code: Some(row.code),
    })
}
