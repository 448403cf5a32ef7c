//! What a trusted gateway says beside a request, and of sessions between requests.
//!
//! Headers and not body fields: the body is the client's, and a gateway passes it on as it is. A replica that was not
//! started with `--trust-hints` reads none of these headers, so that a client cannot name another's session.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use replica_core::fairness::Priority;
use serde::Deserialize;

use super::reply_body::{ReplyBody, json};
use super::{Api, Served, body, job};
use crate::engine::job::{JobTerms, SessionWish};
use crate::failure::{Failure, Problem, ProblemCode};

const SESSION: &str = "x-session-id";
const KEEP: &str = "x-kv-keep-seconds";
const TENANT: &str = "x-tenant-id";
const PRIORITY: &str = "x-priority";

/// Longest name of a session or tenant, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// Longest time that KV may be said to be worth keeping.
const KEEP_SECONDS_MAX: f64 = 86_400.0;
/// Longest body of a wish, in bytes: a name with every letter escaped, and a number.
const WISH_BYTES_MAX: usize = 4096;

/// What the headers say of a request; nothing where they are not believed.
///
/// # Errors
/// `Invalid` with everything that is wrong with them.
pub(super) fn read(served: &Served, headers: &HeaderMap) -> Result<JobTerms, Failure> {
    if !served.trust_hints {
        return Ok(JobTerms::default());
    }
    let mut problems = Vec::new();
    let mut value = |name: &'static str| {
        let value = headers.get(name)?;
        let text = value.to_str().ok().filter(|text| is_name(text));
        if text.is_none() {
            problems.push(problem(name, "1 to 256 printable ASCII characters"));
        }
        text
    };
    let (session, tenant) = (value(SESSION), value(TENANT));
    let (keep, priority) = (value(KEEP), value(PRIORITY));
    let terms = JobTerms {
        session: session.map(str::to_owned),
        tenant: tenant.map(str::to_owned),
        keep: keep.and_then(|text| {
            let keep = text.parse().ok().and_then(keep_time);
            note_missing(keep, KEEP, "a number from 0 to 86400", &mut problems)
        }),
        priority: priority
            .and_then(|text| {
                let named = Priority::ALL.into_iter().find(|p| p.name() == text);
                let allowed = "`interactive`, `default` or `bulk`";
                note_missing(named, PRIORITY, allowed, &mut problems)
            })
            .unwrap_or_default(),
    };
    if terms.keep.is_some() && session.is_none() && headers.get(SESSION).is_none() {
        let allowed = "absent without `x-session-id`";
        problems.push(problem(KEEP, allowed));
    }
    if problems.is_empty() {
        Ok(terms)
    } else {
        Err(Failure::Invalid(problems))
    }
}

fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(|b| matches!(b, b' '..=b'~'))
}

fn keep_time(seconds: f64) -> Option<Duration> {
    (0.0..=KEEP_SECONDS_MAX)
        .contains(&seconds)
        .then(|| Duration::from_secs_f64(seconds))
}

fn note_missing<T>(
    value: Option<T>,
    name: &str,
    allowed: &str,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    if value.is_none() {
        problems.push(problem(name, allowed));
    }
    value
}

fn problem(name: &str, allowed: &str) -> Problem {
    Problem {
        param: name.to_owned(),
        message: format!("`{name}` is not what it may be, expected {allowed}"),
        code: ProblemCode::InvalidValue,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keep {
    session_id: String,
    keep_seconds: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    session_id: String,
}

/// `POST /sessions/keep`: a session's KV is worth keeping for so long from now.
pub(super) async fn keep<B>(api: &Api, request: Request<B>) -> Result<Response<ReplyBody>, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    let wish: Keep = wish(api, request).await?;
    let mut problems = check_session(&wish.session_id);
    let allowed = "a number from 0 to 86400";
    let keep = note_missing(
        keep_time(wish.keep_seconds),
        "keep_seconds",
        allowed,
        &mut problems,
    );
    match keep {
        Some(keep) if problems.is_empty() => grant(api, SessionWish::Keep(wish.session_id, keep)),
        _ => Err(Failure::Invalid(problems)),
    }
}

/// `POST /sessions/release`: a session has ended or moved away.
pub(super) async fn release<B>(
    api: &Api,
    request: Request<B>,
) -> Result<Response<ReplyBody>, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    let wish: Release = wish(api, request).await?;
    let problems = check_session(&wish.session_id);
    if problems.is_empty() {
        grant(api, SessionWish::Release(wish.session_id))
    } else {
        Err(Failure::Invalid(problems))
    }
}

fn check_session(session: &str) -> Vec<Problem> {
    if is_name(session) {
        return Vec::new();
    }
    vec![problem("session_id", "1 to 256 printable ASCII characters")]
}

async fn wish<B, W>(api: &Api, request: Request<B>) -> Result<W, Failure>
where
    B: Body<Data = Bytes> + Unpin,
    W: for<'a> Deserialize<'a>,
{
    if !api.served.trust_hints {
        return Err(Failure::HintsNotTrusted);
    }
    let body = body::read(request, WISH_BYTES_MAX).await?;
    serde_json::from_slice(&body).map_err(|error| Failure::BadJson(error.to_string()))
}

fn grant(api: &Api, wish: SessionWish) -> Result<Response<ReplyBody>, Failure> {
    api.engine.wish(wish).map_err(job::refusal)?;
    let ok = Bytes::from_static(b"{\"status\":\"ok\"}");
    Ok(json(StatusCode::OK, ok))
}

#[cfg(test)]
mod tests;
