use http::{Method, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::*;
use crate::scripted::{self, MANY};

/// The answer to one request on an engine of its own.
async fn ask(method: Method, path: &str, body: &str) -> (StatusCode, http::HeaderMap, String) {
    let (engine, gate) = scripted::engine(4, 4);
    gate.open(MANY);
    send(scripted::api(engine), method, path, body).await
}

async fn send(
    api: Arc<Api>,
    method: Method,
    path: &str,
    body: &str,
) -> (StatusCode, http::HeaderMap, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .body(Full::from(body.to_owned()))
        .unwrap();
    let (parts, body) = api.handle(request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (
        parts.status,
        parts.headers,
        String::from_utf8(body.to_vec()).unwrap(),
    )
}

async fn chat(api: &Arc<Api>, body: &str) -> (StatusCode, Value) {
    let (status, _, body) = send(Arc::clone(api), Method::POST, "/v1/chat/completions", body).await;
    (status, serde_json::from_str(&body).unwrap())
}

fn says(text: &str, extra: &str) -> String {
    let comma = if extra.is_empty() { "" } else { "," };
    format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]{comma}{extra}}}"#)
}

/// What an answer says and why it ended, or the error's status, code and param.
async fn check(body: &str, expect: Result<(&str, &str), (u16, &str, Option<&str>)>) {
    let (engine, gate) = scripted::engine(4, 4);
    gate.open(MANY);
    let (status, answer) = chat(&scripted::api(engine), body).await;
    if status == StatusCode::OK {
        let choice = &answer["choices"][0];
        let got = (
            choice["message"]["content"].as_str().unwrap(),
            choice["finish_reason"].as_str().unwrap(),
        );
        assert_eq!(Ok(got), expect, "{body}");
    } else {
        let error = &answer["error"];
        let got = (
            status.as_u16(),
            error["code"].as_str().unwrap(),
            error["param"].as_str(),
        );
        assert_eq!(Err(got), expect, "{body}: {error}");
    }
}

#[tokio::test]
async fn an_answer_goes_on_to_its_end() {
    check(&says("vwx", ""), Ok(("yz", "stop"))).await;
    check(&says("abc", r#""max_tokens":3"#), Ok(("def", "length"))).await;
    check(
        &says("abc", r#""max_completion_tokens":3"#),
        Ok(("def", "length")),
    )
    .await;
    check(&says("abc", r#""stop":"f""#), Ok(("de", "stop"))).await;
    check(
        &says("abc", r#""stop":["gh"],"temperature":0"#),
        Ok(("def", "stop")),
    )
    .await;
    check(&says("abc", r#""stop_token_ids":[5]"#), Ok(("de", "stop"))).await;
    check(
        &says("abc", r#""model":"alphabet","max_tokens":1"#),
        Ok(("d", "length")),
    )
    .await;
}

#[tokio::test]
async fn an_answer_without_a_bound_ends_with_the_context() {
    let (engine, gate) = scripted::engine(4, 4);
    gate.open(MANY);
    let (status, answer) = chat(
        &scripted::api(engine),
        &says("a", r#""ignore_eos":true,"temperature":0"#),
    )
    .await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["usage"]["total_tokens"], scripted::CONTEXT_MAX);
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_its_code_and_field() {
    let bad = |code, param| Err((400, code, Some(param)));
    check("{", Err((400, "invalid_json", None))).await;
    check("{}", bad("missing_required_parameter", "messages")).await;
    check(
        &says("a", r#""temperature":7"#),
        bad("invalid_value", "temperature"),
    )
    .await;
    check(
        &says("a", r#""tempratur":7"#),
        bad("unknown_parameter", "tempratur"),
    )
    .await;
    check(&says("a", r#""n":2"#), bad("unsupported", "n")).await;
    check(
        &says("a", r#""stop_token_ids":[30]"#),
        bad("invalid_value", "stop_token_ids"),
    )
    .await;
    check(&says("refuse", ""), bad("template_refused", "messages")).await;
    check(
        &says(&"a".repeat(128), ""),
        bad("context_length_exceeded", "messages"),
    )
    .await;
    check(
        &says("a", r#""max_tokens":128"#),
        bad("context_length_exceeded", "messages"),
    )
    .await;
    check(&says("!", ""), Err((500, "engine_failed", None))).await;
}

// RC-162: a model that is not served is not answered by another.
#[tokio::test]
async fn rc_162_a_model_that_is_not_served_is_not_found() {
    check(
        &says("a", r#""model":"tide-9b""#),
        Err((404, "model_not_found", Some("model"))),
    )
    .await;
}

#[tokio::test]
async fn usage_tells_what_was_cached_and_the_counters_agree() {
    let (engine, gate) = scripted::engine(4, 4);
    gate.open(MANY);
    let api = scripted::api(engine);
    let long = "a".repeat(40);
    let ask = says(&long, r#""max_tokens":1"#);
    let (_, cold) = chat(&api, &ask).await;
    let (_, warm) = chat(&api, &ask).await;
    assert_eq!(cold["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    assert_eq!(warm["usage"]["prompt_tokens_details"]["cached_tokens"], 32);
    assert_eq!(
        warm["usage"]["completion_tokens_details"]["reasoning_tokens"],
        0
    );
    let salted = says(&long, r#""max_tokens":1,"cache_salt":"tenant-2""#);
    let (_, other) = chat(&api, &salted).await;
    assert_eq!(other["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    let (_, _, text) = send(Arc::clone(&api), Method::GET, "/metrics", "").await;
    assert!(text.contains("outcome=\"hit\"} 32\n"), "{text}");
    assert!(text.contains("outcome=\"miss\"} 88\n"), "{text}");
    let (status, ..) = send(Arc::clone(&api), Method::POST, "/reset_prefix_cache", "").await;
    assert_eq!(status, StatusCode::OK);
    let (_, cold) = chat(&api, &ask).await;
    assert_eq!(cold["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

#[tokio::test]
async fn a_stream_carries_its_headers_and_ends_with_done() {
    let body = says(
        "wx",
        r#""stream":true,"stream_options":{"include_usage":true}"#,
    );
    let (status, headers, text) = ask(Method::POST, "/v1/chat/completions", &body).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["content-type"], "text/event-stream");
    assert_eq!(headers["cache-control"], "no-cache");
    assert_eq!(headers["x-accel-buffering"], "no");
    let events: Vec<&str> = text
        .split("\n\n")
        .filter_map(|e| e.strip_prefix("data: "))
        .collect();
    let (done, chunks) = events.split_last().unwrap();
    assert_eq!(*done, "[DONE]");
    let chunks: Vec<Value> = chunks
        .iter()
        .map(|c| serde_json::from_str(c).unwrap())
        .collect();
    assert_eq!(
        chunks[0]["choices"][0]["delta"],
        json!({"role":"assistant","content":""})
    );
    let said: String = chunks
        .iter()
        .filter_map(|c| c["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(said, "yz");
    let last = &chunks[chunks.len() - 1];
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["total_tokens"], 5);
    assert!(chunks.iter().all(|c| c["id"] == chunks[0]["id"]));
}

/// Reasoning, content, reason and count of reasoning tokens, whole and streamed, which must be the same.
async fn check_thinking(body: &str, expect: (Value, Value, &str, u64)) {
    let (engine, gate) = scripted::engine(4, 4);
    gate.open(MANY);
    let api = scripted::thinking_api(engine);
    let (_, whole) = chat(&api, &says(body, r#""max_tokens":8"#)).await;
    let (choice, message) = (&whole["choices"][0], &whole["choices"][0]["message"]);
    let (reasoning, content, finish, count) = expect;
    assert_eq!(message["reasoning_content"], reasoning, "{body}: {whole}");
    assert_eq!(message["content"], content, "{body}: {whole}");
    assert_eq!(choice["finish_reason"], finish, "{body}");
    let details = |usage: &Value| usage["completion_tokens_details"]["reasoning_tokens"].as_u64();
    assert_eq!(details(&whole["usage"]), Some(count), "{body}");

    let extra = r#""max_tokens":8,"stream":true,"stream_options":{"include_usage":true}"#;
    let (_, _, text) = send(
        api,
        Method::POST,
        "/v1/chat/completions",
        &says(body, extra),
    )
    .await;
    let chunks: Vec<Value> = text
        .split("\n\n")
        .filter_map(|event| serde_json::from_str(event.strip_prefix("data: ")?).ok())
        .collect();
    let joined = |field: &str| -> String {
        let pieces = chunks.iter();
        pieces
            .filter_map(|chunk| chunk["choices"][0]["delta"][field].as_str())
            .collect()
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    assert_eq!(joined("reasoning_content"), text(&reasoning), "{body}");
    assert_eq!(joined("content"), text(&content), "{body}");
    assert_eq!(details(&chunks[chunks.len() - 1]["usage"]), Some(count));
}

#[tokio::test]
async fn reasoning_comes_in_its_own_field_whole_and_streamed() {
    check_thinking("abc", (json!("ef"), json!("hijk"), "length", 2)).await;
    // The template has opened the block, or closed an empty one.
    check_thinking("d", (json!("ef"), json!("hijkl"), "length", 2)).await;
    check_thinking("dg", (Value::Null, json!("hijklmno"), "length", 0)).await;
    // No block at all, though a mark comes later.
    check_thinking("b", (Value::Null, json!("cdefghij"), "length", 0)).await;
    // Cut inside the reasoning, which is never closed.
    check_thinking("dh", (json!("ijklmnop"), Value::Null, "length", 8)).await;
    check_thinking("dx", (json!("yz"), Value::Null, "stop", 2)).await;
}

#[tokio::test]
async fn log_probabilities_are_told_when_asked_for() {
    let (engine, gate) = scripted::engine(4, 4);
    gate.open(MANY);
    let ask = says("a", r#""max_tokens":2,"logprobs":true,"top_logprobs":2"#);
    let (_, answer) = chat(&scripted::api(engine), &ask).await;
    let content = answer["choices"][0]["logprobs"]["content"]
        .as_array()
        .unwrap();
    assert_eq!(content.len(), 2);
    assert_eq!(content[0]["token"], "b");
    assert_eq!(content[0]["bytes"], json!([98]));
    assert_eq!(content[0]["top_logprobs"].as_array().unwrap().len(), 2);
    assert!(content[0]["logprob"].as_f64().unwrap() < 0.0);
}

#[tokio::test]
async fn paths_and_methods_that_are_not_there_are_refused_in_openais_shape() {
    for (method, path, status, code) in [
        (Method::GET, "/v2", 404, "unknown_url"),
        (
            Method::GET,
            "/v1/chat/completions",
            405,
            "method_not_allowed",
        ),
        (Method::POST, "/health", 405, "method_not_allowed"),
        (
            Method::GET,
            "/reset_prefix_cache",
            405,
            "method_not_allowed",
        ),
    ] {
        let (got, headers, body) = ask(method, path, "").await;
        assert_eq!(got.as_u16(), status, "{path}");
        assert_eq!(headers["content-type"], "application/json");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["error"]["code"], code, "{path}");
        assert_eq!(headers.contains_key("allow"), status == 405, "{path}");
    }
}

#[tokio::test]
async fn the_models_list_names_what_is_served() {
    let (status, _, body) = ask(Method::GET, "/v1/models", "").await;
    assert_eq!(status, StatusCode::OK);
    let list: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(list["object"], "list");
    assert_eq!(list["data"][0]["id"], "alphabet");
    assert_eq!(list["data"][0]["max_model_len"], scripted::CONTEXT_MAX);
}

#[tokio::test]
async fn health_says_what_this_is_and_turns_503_in_a_drain() {
    let (engine, gate) = scripted::engine(4, 4);
    gate.open(MANY);
    let api = scripted::api(engine);
    let (status, _, body) = send(Arc::clone(&api), Method::GET, "/health", "").await;
    assert_eq!(status, StatusCode::OK);
    let mut health: Value = serde_json::from_str(&body).unwrap();
    health["version"] = "v".into();
    assert_eq!(
        health,
        json!({
            "status": "ok", "instance": "instance-1", "name": "replica-0", "model": "alphabet",
            "device": "scripted", "version": "v", "context_max": 128, "block_tokens": 16, "kv_blocks": 64,
            "kv_blocks_used": 0, "prefix_cache": true, "running": 0, "waiting": 0,
        })
    );
    api.engine().drain();
    let (status, _, body) = send(Arc::clone(&api), Method::GET, "/health", "").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.contains("\"draining\""), "{body}");
    let (status, headers, _) = send(
        Arc::clone(&api),
        Method::POST,
        "/v1/chat/completions",
        &says("a", ""),
    )
    .await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(headers["retry-after"], "1");
}

#[tokio::test]
async fn a_full_queue_is_a_503_that_says_when_to_come_again() {
    let (engine, gate) = scripted::engine(1, 1);
    let api = scripted::api(engine);
    let body = says("vw", r#""stream":true"#);
    let request = || {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/v1/chat/completions");
        request.body(Full::from(body.clone())).unwrap()
    };
    // The gate is closed: one request is in its first step, one waits, and there is no third place.
    let mut taken = Vec::new();
    let refused = loop {
        let response = Arc::clone(&api).handle(request()).await;
        match response.status() {
            StatusCode::OK => taken.push(response),
            _ => break response,
        }
        assert!(taken.len() < 3);
    };
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["retry-after"], "1");
    gate.open(MANY);
    for response in taken {
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert!(text.ends_with(b"data: [DONE]\n\n"));
    }
}

#[tokio::test]
async fn an_engine_that_panics_fails_its_requests_and_takes_no_others() {
    let (engine, gate) = scripted::engine(4, 4);
    gate.open(MANY);
    let api = scripted::api(engine);
    let (status, answer) = chat(&api, &says("?", "")).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{answer}");
    api.engine().stopped().await;
    let (status, answer) = chat(&api, &says("a", "")).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer["error"]["code"], "engine_stopped");
    let (status, ..) = send(api, Method::GET, "/health", "").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_request_keeps_its_own_name_and_gets_one_otherwise() {
    let (engine, _gate) = scripted::engine(4, 4);
    let api = scripted::api(engine);
    let mut names = Vec::new();
    for name in ["mine-1", "with space", &"x".repeat(129), ""] {
        let request = Request::builder().uri("/health").header(REQUEST_ID, name);
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let response = Arc::clone(&api).handle(request).await;
        names.push(response.headers()[REQUEST_ID].to_str().unwrap().to_owned());
    }
    assert_eq!(names[0], "mine-1");
    assert!(
        names[1..]
            .iter()
            .all(|name| name.starts_with("req-") && name.len() == 36),
        "{names:?}"
    );
    assert_ne!(names[1], names[2]);
}
