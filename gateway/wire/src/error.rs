//! OpenAI's error body, the only shape in which either shell says no.

use bytes::Bytes;
use serde::Serialize;

/// What a client is told when a request fails: `{"error":{"message","type","param","code"}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorBody<'a> {
    /// For a person: what happened and what to do.
    pub message: &'a str,
    /// OpenAI's family of the error, such as `invalid_request_error` or `server_error`.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// The request field at fault, where there is one.
    pub param: Option<&'a str>,
    /// For a program: the error's own name, such as `model_not_found`.
    pub code: Option<&'a str>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: &'a ErrorBody<'a>,
}

impl ErrorBody<'_> {
    /// The JSON body of a response.
    #[must_use]
    pub fn to_json(&self) -> Bytes {
        crate::reply::to_json(&Envelope { error: self })
    }

    /// The same as an event, for a stream whose status line has gone out already.
    #[must_use]
    pub fn to_event(&self) -> Bytes {
        crate::sse::encode(&self.to_json())
    }
}
