//! What the gateway takes in, and what it refuses before it costs anything.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{Full, StreamBody};
use hyper::body::Frame;

use crate::fleet::{Fleet, chat, read};
use crate::replica::{STOP, Scripted, Step, event, stream_head};

fn small() -> Fleet {
    Fleet::with(vec![Scripted::well("a")], |config| {
        config.limits.body_bytes_max = 1000
    })
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_limit_is_refused_and_one_at_it_is_not() {
    // RC-117
    let fleet = small();
    let padded = |length: usize| {
        let body = chat(&["x"]);
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    assert_eq!(fleet.ask(&[], &padded(1000)).await.status, 200);
    let answer = fleet.ask(&[], &padded(1001)).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "body_too_large")
    );
    assert_eq!(answer.header("content-type"), "application/json");
    assert!(answer.header("x-request-id").starts_with("req-"));
    assert_eq!(
        (answer.replica(), answer.reason()),
        ("none", "body_too_large")
    );
}

#[tokio::test(start_paused = true)]
async fn anything_that_is_not_a_chat_request_is_refused_in_openais_words() {
    let fleet = small();
    let check = async |method: Method, path: &str, body: &str, status: u16, code: &str| {
        let body = Full::from(body.to_owned());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(body)
            .unwrap();
        let answer = read(fleet.send(request).await).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{path}"
        );
        answer
    };
    let chat = "/v1/chat/completions";
    let answer = check(
        Method::POST,
        chat,
        r#"{"messages": [nope]}"#,
        400,
        "invalid_body",
    )
    .await;
    assert!(answer.body.contains("14"), "the offset: {}", answer.body);
    check(Method::POST, chat, "", 400, "invalid_body").await;
    let answer = check(Method::GET, chat, "", 405, "method_not_allowed").await;
    assert_eq!(answer.header("allow"), "POST");
    check(Method::POST, "/v1/models", "", 405, "method_not_allowed").await;
    check(Method::GET, "/v1/nothing", "", 404, "not_found").await;
    assert_eq!(fleet.outcome("none", "rejected"), 5.0);
    assert_eq!(
        fleet.metric("gateway_failures_total{code=\"invalid_body\"}"),
        2.0
    );
}

#[tokio::test(start_paused = true)]
async fn models_and_health_are_answered_by_the_gateway() {
    let fleet = small();
    fleet.tell_models(0, &["m"]);
    let get = async |path: &str| {
        let request = Request::get(path).body(Full::default()).unwrap();
        read(fleet.send(request).await).await
    };
    assert_eq!(
        get("/v1/models").await.body,
        r#"{"object":"list","data":[{"id":"m"}]}"#
    );
    assert_eq!(get("/health").await.status, 200);
    fleet.known.fleet.replicas()[0].on_unreachable("test");
    assert_eq!(get("/health").await.status, 503);
    assert_eq!(fleet.replicas[0].count(), 0);
}

#[tokio::test(start_paused = true)]
async fn so_many_requests_are_taken_and_each_ending_makes_room() {
    let fleet = Fleet::with(
        vec![Scripted::new("a", |_| {
            vec![stream_head(), event(STOP), Step::Hang]
        })],
        |config| config.limits.in_flight_max = 2,
    );
    let body = chat(&["x"]);
    let first = fleet.open(&[], &body).await;
    let second = fleet.open(&[], &body).await;
    let refused = fleet.ask(&[], &body).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (503, "gateway_overloaded")
    );
    assert_eq!(refused.header("retry-after"), "1");
    // Health and models are answered still.
    let health = Request::get("/health").body(Full::default()).unwrap();
    assert_eq!(fleet.send(health).await.status(), 200);
    drop(first);
    let third = fleet.open(&[], &body).await;
    assert_eq!(third.status(), 200);
    assert_eq!(fleet.open(&[], &body).await.status(), 503);
    // The end of a stream makes room as soon as the body is dropped, read or not.
    let _ = read(second).await;
    drop(third);
    assert_eq!(fleet.open_requests(), 0.0);
    // A refused body makes room at once.
    assert_eq!(fleet.ask(&[], "nope").await.status, 400);
    assert_eq!(fleet.open_requests(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn bodies_in_pieces_are_joined_counted_and_timed() {
    let config = crate::fleet::config(&[]);
    let fleet = small();
    let pieces = |pieces: Vec<(&'static str, u64)>| {
        let stream = futures_util::stream::unfold(pieces.into_iter(), |mut rest| async {
            let (piece, wait_s) = rest.next()?;
            tokio::time::sleep(Duration::from_secs(wait_s)).await;
            Some((
                Ok::<_, Infallible>(Frame::data(Bytes::from_static(piece.as_bytes()))),
                rest,
            ))
        });
        Request::post("/v1/chat/completions")
            .body(StreamBody::new(Box::pin(stream)))
            .unwrap()
    };
    let spaces: &'static str = " ".repeat(600).leak();
    let whole = [("{\"mess", 0), ("ages\":[]", 1), ("}", 1)].to_vec();
    assert_eq!(
        read(fleet.send_pieces(pieces(whole)).await).await.status,
        200
    );
    assert_eq!(fleet.replicas[0].last().body, r#"{"messages":[]}"#);
    let large = [(spaces, 0), (spaces, 0)].to_vec();
    assert_eq!(
        read(fleet.send_pieces(pieces(large)).await).await.status,
        413
    );
    let slow = [("{", 0), ("}", config.timeouts.request_body.as_secs() + 1)].to_vec();
    let answer = read(fleet.send_pieces(pieces(slow)).await).await;
    assert_eq!((answer.status, answer.code().as_str()), (408, "body_slow"));
}
