use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use serde_json::Value;

use super::*;
use crate::scripted::{self, MANY};

fn served(trust_hints: bool) -> Served {
    let (engine, _gate) = scripted::engine(4, 4);
    let api = scripted::api(engine);
    let served = api.served.clone();
    Served {
        trust_hints,
        ..served
    }
}

#[track_caller]
fn check(headers: &[(&'static str, &str)], expect: Result<JobTerms, &str>) {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect();
    let got = read(&served(true), &headers).map_err(|failure| failure.message());
    assert_eq!(got, expect.map_err(str::to_owned));
    assert_eq!(read(&served(false), &headers), Ok(JobTerms::default()));
}

#[test]
fn headers_are_read_only_where_they_are_trusted_and_refused_with_all_that_is_wrong() {
    check(&[], Ok(JobTerms::default()));
    check(
        &[
            (SESSION, "s-1"),
            (KEEP, "2.5"),
            (TENANT, "acme"),
            (PRIORITY, "bulk"),
        ],
        Ok(JobTerms {
            session: Some("s-1".to_owned()),
            keep: Some(Duration::from_millis(2500)),
            tenant: Some("acme".to_owned()),
            priority: Priority::Bulk,
        }),
    );
    check(
        &[(SESSION, ""), (KEEP, "-1"), (PRIORITY, "urgent")],
        Err(
            "`x-session-id` is not what it may be, expected 1 to 256 printable ASCII characters; \
             `x-kv-keep-seconds` is not what it may be, expected a number from 0 to 86400; \
             `x-priority` is not what it may be, expected `interactive`, `default` or `bulk`",
        ),
    );
    check(
        &[(KEEP, "5")],
        Err("`x-kv-keep-seconds` is not what it may be, expected absent without `x-session-id`"),
    );
}

async fn post(api: &Arc<Api>, path: &str, session: Option<&str>, body: &str) -> (u16, Value) {
    let mut request = Request::builder().method("POST").uri(path);
    if let Some(session) = session {
        request = request.header(SESSION, session).header(KEEP, "60");
    }
    let request = request.body(Full::<Bytes>::from(body.to_owned())).unwrap();
    let (parts, body) = Arc::clone(api).handle(request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    (parts.status.as_u16(), value)
}

#[tokio::test]
async fn a_session_is_kept_after_its_turn_until_it_is_released() {
    let (engine, gate) = scripted::engine(4, 4);
    gate.open(MANY);
    let api = scripted::api(engine);
    let text = "a".repeat(40);
    let chat = format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}],"max_tokens":1}}"#);
    let (status, _) = post(&api, "/v1/chat/completions", Some("s-1"), &chat).await;
    assert_eq!(status, 200);
    let stats = api.engine().stats();
    assert_eq!((stats.kv_blocks_kept, stats.sessions), (2, 1));
    let released = post(&api, "/sessions/release", None, r#"{"session_id":"s-1"}"#).await;
    assert_eq!(released.0, 200);
    // What is said between requests counts from the next step on.
    let (status, _) = post(
        &api,
        "/v1/chat/completions",
        None,
        &chat.replace(&text, "bcd"),
    )
    .await;
    assert_eq!(status, 200);
    assert_eq!(api.engine().stats().kv_blocks_kept, 0);
}

#[tokio::test]
async fn a_wish_is_refused_with_what_is_wrong_and_where_nobody_is_believed() {
    let (engine, _gate) = scripted::engine(4, 4);
    let api = scripted::api(engine);
    for (path, body, status, code) in [
        ("/sessions/keep", "{}", 400, "invalid_json"),
        (
            "/sessions/keep",
            r#"{"session_id":"","keep_seconds":1e9}"#,
            400,
            "invalid_value",
        ),
        (
            "/sessions/release",
            r#"{"session_id":"a","keep_seconds":1}"#,
            400,
            "invalid_json",
        ),
    ] {
        let (got, body) = post(&api, path, None, body).await;
        assert_eq!(
            (got, body["error"]["code"].as_str()),
            (status, Some(code)),
            "{body}"
        );
    }
    let (engine, _gate) = scripted::engine(4, 4);
    let api = Arc::new(
        Api::new(
            engine,
            Arc::new(scripted::Letters),
            Arc::new(scripted::Letters),
            served(false),
        )
        .unwrap(),
    );
    let (status, body) = post(&api, "/sessions/release", None, r#"{"session_id":"a"}"#).await;
    assert_eq!(status, 403);
    assert_eq!(body["error"]["code"], "hints_not_trusted");
}
