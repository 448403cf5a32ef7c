//! The head of an answer: what of a replica's headers reaches the client, and what the gateway adds.

use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Response, response};

use super::events::EventRelay;
use super::plain::PlainRelay;
use super::reasoning::Split;
use super::route::StreamPlan;
use super::whole;
use crate::failure::Failure;
use crate::layers::observe::Record;
use crate::metrics::Outcome;
use crate::reply::ReplyBody;
use crate::state::sent::Sent;
use crate::upstream::body::UpstreamBody;
use std::sync::Arc;

/// Names the replica that answered, or `none`.
pub const X_PINION_REPLICA: HeaderName = HeaderName::from_static("x-pinion-replica");
/// Names the reason of the decision, or of the refusal.
pub const X_PINION_REASON: HeaderName = HeaderName::from_static("x-pinion-reason");
/// Names the lane that the request took, where the policy has lanes.
pub const X_PINION_LANE: HeaderName = HeaderName::from_static("x-pinion-lane");
/// Why it is that lane.
pub const X_PINION_LANE_REASON: HeaderName = HeaderName::from_static("x-pinion-lane-reason");
/// Says how many tokens the model may think, where the gateway told the replica.
pub const X_PINION_THINKING_BUDGET: HeaderName =
    HeaderName::from_static("x-pinion-thinking-budget");
/// Asks proxies of nginx's kind in front of the gateway not to hold a stream back.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Headers that belong to one connection (RFC 9110, 7.6.1) and end there.
const HOP_HEADERS: [HeaderName; 8] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authorization"),
];

/// Removes what belongs to one connection: the well-known headers, and those that `Connection` names.
pub(super) fn strip_hop_headers(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let lines: Vec<HeaderValue> = headers.get_all(CONNECTION).iter().cloned().collect();
        for name in lines
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(|l| l.split(','))
        {
            headers.remove(name.trim());
        }
    }
    for name in &HOP_HEADERS {
        headers.remove(name);
    }
}

/// What an answer is relayed with.
pub(super) struct Answering {
    pub(super) sent: Sent,
    /// Why this replica.
    pub(super) reason: &'static str,
    pub(super) stream: StreamPlan,
    /// What reshapes it, where it is reshaped.
    pub(super) split: Option<Split>,
    /// A stream of the replica's is a whole answer to the client.
    pub(super) gather: bool,
    pub(super) record: Arc<Record>,
}

/// The answer for the client, which drives the replica's connection as it is read.
///
/// # Errors
/// A whole answer that is reshaped broke off.
pub(super) async fn reply(
    parts: response::Parts,
    upstream: UpstreamBody,
    answering: Answering,
) -> Result<Response<ReplyBody>, Failure> {
    let Answering {
        sent,
        reason,
        stream,
        split,
        gather,
        record,
    } = answering;
    let response::Parts {
        status,
        mut headers,
        ..
    } = parts;
    strip_hop_headers(&mut headers);
    headers.insert(X_PINION_REPLICA, sent.replica().name_header().clone());
    headers.insert(X_PINION_REASON, HeaderValue::from_static(reason));
    let body = if gather && status.is_success() && is_event_stream(&headers) {
        headers.remove(CONTENT_LENGTH);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let relay = EventRelay::new(upstream, sent, stream, split, record);
        ReplyBody::whole(whole::gather(relay).await?)
    } else if status.is_success() && is_event_stream(&headers) {
        headers.remove(CONTENT_LENGTH);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
        ReplyBody::events(EventRelay::new(upstream, sent, stream, split, record))
    } else if let Some(split) = split.filter(|_| status.is_success()) {
        headers.remove(CONTENT_LENGTH);
        let body = whole::reshape(upstream, sent, split).await?;
        record.ended(Outcome::Ok);
        ReplyBody::whole(body)
    } else {
        ReplyBody::plain(PlainRelay::new(upstream, sent, status, record))
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(CONTENT_TYPE)
        .map_or(&b""[..], HeaderValue::as_bytes);
    content_type
        .to_ascii_lowercase()
        .starts_with(b"text/event-stream")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &[(&str, &str)], after: &[(&str, &str)]) {
        let mut headers = HeaderMap::new();
        for (name, value) in before {
            let name = HeaderName::try_from(*name).unwrap();
            headers.append(name, HeaderValue::try_from(*value).unwrap());
        }
        strip_hop_headers(&mut headers);
        let left: Vec<_> = headers
            .iter()
            .map(|(n, v)| (n.as_str(), v.to_str().unwrap()))
            .collect();
        assert_eq!(left, after);
    }

    #[test]
    fn what_belongs_to_one_connection_ends_there() {
        // RC-119
        check(
            &[
                ("connection", "close, X-Hop"),
                ("x-hop", "1"),
                ("x-keep", "2"),
            ],
            &[("x-keep", "2")],
        );
        check(
            &[
                ("connection", "x-a"),
                ("connection", "x-b,,"),
                ("x-a", "1"),
                ("x-b", "1"),
                ("x-c", "1"),
            ],
            &[("x-c", "1")],
        );
        check(
            &[
                ("te", "trailers"),
                ("keep-alive", "timeout=5"),
                ("upgrade", "h2c"),
            ],
            &[],
        );
        // RC-120
        check(
            &[("set-cookie", "a=1"), ("set-cookie", "b=2")],
            &[("set-cookie", "a=1"), ("set-cookie", "b=2")],
        );
    }
}
