//! Streams: what of a replica's events reaches the client, how a stream ends, and what is counted of it.

use std::time::Duration;

use chat_wire::sse::FrameCutter;
use http_body_util::BodyExt as _;
use proptest::prelude::*;

use crate::fleet::{Answer, Fleet, chat, read};
use crate::replica::{
    STOP, Scripted, Step, USAGE, chunk, end, event, json, stream, stream_head, wait,
};

const A: &str = r#"{"choices":[{"index":0,"delta":{"content":"A"}}]}"#;

fn one(script: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static) -> Fleet {
    Fleet::new(vec![Scripted::new("a", script)])
}

async fn ask(fleet: &Fleet) -> Answer {
    fleet.ask(&[], &chat(&["x"])).await
}

fn sse(data: &[&str]) -> String {
    data.iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn events_pass_unchanged_with_the_headers_of_a_stream() {
    // RC-123, RC-120
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ntransfer-encoding: chunked\r\n\r\n";
    let fleet = one(move |_| {
        vec![
            Step::Send(head.into()),
            chunk(": ping\n\n"),
            event(A),
            event(STOP),
            event("[DONE]"),
            end(),
        ]
    });
    let answer = fleet
        .ask(
            &[("accept-encoding", "gzip"), ("x-request-id", "r-1")],
            &chat(&["x"]),
        )
        .await;
    assert_eq!(
        answer.body,
        format!(": ping\n\n{}", sse(&[A, STOP, "[DONE]"]))
    );
    assert_eq!(answer.header("cache-control"), "no-cache");
    assert_eq!(answer.header("x-accel-buffering"), "no");
    assert_eq!(answer.header("x-request-id"), "r-1");
    assert!(!answer.headers.contains_key("transfer-encoding"));
    let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
    let got = fleet.replicas[0].last().head.to_lowercase();
    assert!(
        !got.contains("accept-encoding") && got.contains("x-request-id: r-1"),
        "{got}"
    );
    assert!(
        got.starts_with("post /v1/chat/completions?a=b http/1.1\r\n"),
        "{got}"
    );
    assert!(got.contains("host: a:1"), "{got}");
}

#[tokio::test(start_paused = true)]
async fn hop_by_hop_headers_do_not_reach_the_replica() {
    // RC-119
    let fleet = one(|_| stream(&[STOP, "[DONE]"]));
    let headers = [
        ("connection", "close, X-Hop"),
        ("x-hop", "1"),
        ("x-keep", "2"),
        ("te", "trailers"),
    ];
    let _ = fleet.ask(&headers, &chat(&["x"])).await;
    let got = fleet.replicas[0].last().head.to_lowercase();
    assert!(got.contains("x-keep: 2"), "{got}");
    for gone in ["x-hop", "connection", "te:"] {
        assert!(!got.contains(gone), "{gone} in {got}");
    }
}

#[tokio::test(start_paused = true)]
async fn headers_and_each_event_reach_the_client_as_they_come() {
    // RC-124, RC-123
    let fleet = one(|_| {
        let mut steps = vec![
            wait(100),
            stream_head(),
            wait(40_000),
            event(A),
            wait(10_000),
        ];
        steps.extend([event(STOP), event("[DONE]"), end()]);
        steps
    });
    let start = tokio::time::Instant::now();
    let mut response = fleet.open(&[], &chat(&["x"])).await;
    assert_eq!(start.elapsed(), Duration::from_millis(100));
    let ping = ": ping\n\n".to_owned();
    for (ms, expected) in [
        (15_100, ping.clone()),
        (30_100, ping),
        (40_100, sse(&[A])),
        (50_100, sse(&[STOP])),
    ] {
        let frame = response.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), expected);
        assert_eq!(start.elapsed(), Duration::from_millis(ms), "{expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn usage_is_asked_for_and_its_chunk_withheld_unless_the_client_wants_it() {
    let fleet = one(|_| stream(&[A, STOP, USAGE, "[DONE]"]));
    let answer = ask(&fleet).await;
    assert_eq!(answer.body, sse(&[A, STOP, "[DONE]"]));
    let sent = fleet.replicas[0].last().body;
    assert!(
        sent.ends_with(r#"],"stream_options":{"include_usage":true}}"#),
        "{sent}"
    );
    let wants = chat(&["x"]).replace(
        "\"model\"",
        r#""stream_options":{"include_usage": true},"model""#,
    );
    let answer = fleet.ask(&[], &wants).await;
    assert_eq!(answer.body, sse(&[A, STOP, USAGE, "[DONE]"]));
    assert_eq!(fleet.replicas[0].last().body, wants);
    let refuses = wants.replace("true}", "false}");
    let answer = fleet.ask(&[], &refuses).await;
    assert_eq!(answer.body, sse(&[A, STOP, "[DONE]"]));
    for (series, value) in [("prompt", 27.0), ("cached", 12.0), ("completion", 6.0)] {
        assert_eq!(
            fleet.metric(&format!(
                "gateway_{series}_tokens_total{{lane=\"\",replica=\"a\"}}"
            )),
            value
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_passes_with_its_usage_counted() {
    let body = r#"{"choices":[{"index":0,"message":{"content":"A"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#;
    let fleet = one(move |_| json(200, body));
    let request = r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
    let answer = fleet.ask(&[], request).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, body));
    assert_eq!(answer.header("content-length"), body.len().to_string());
    assert_eq!(fleet.replicas[0].last().body, request);
    assert_eq!(
        fleet.metric("gateway_cached_tokens_total{lane=\"\",replica=\"a\"}"),
        4.0
    );
    assert_eq!(fleet.outcome("a", "ok"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_replicas_own_error_passes_as_it_is() {
    // RC-127
    let fleet = one(|_| {
        vec![Step::Send(
            "HTTP/1.1 422 No\r\ncontent-type: application/problem+json\r\ncontent-length: 14\r\n\r\n{\"title\":\"no\"}".into(),
        )]
    });
    let answer = ask(&fleet).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (422, "application/problem+json")
    );
    assert_eq!(answer.body, r#"{"title":"no"}"#);
    assert_eq!(fleet.outcome("a", "client_error"), 1.0);
    // It answered nothing, so it holds nothing of this conversation.
    assert!(fleet.known.prefixes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_early_ends_with_an_error_event() {
    // RC-115, and the same with a cut event at the end, a cut chunk, and a silence.
    let cases = [
        (
            vec![stream_head(), event(A), end()],
            "answer_truncated",
            "upstream_error",
        ),
        (
            vec![stream_head(), event(A), chunk("data: {\"cho"), end()],
            "answer_truncated",
            "upstream_error",
        ),
        (
            vec![
                stream_head(),
                event(A),
                Step::Send("20\r\ndata".into()),
                Step::Drop,
            ],
            "answer_truncated",
            "upstream_error",
        ),
        (
            vec![stream_head(), event(A), Step::Hang],
            "idle_timeout",
            "timeout",
        ),
    ];
    for (steps, code, outcome) in cases {
        let fleet = one(move |_| steps.clone());
        let answer = ask(&fleet).await;
        let body = answer.body.replace(": ping\n\n", "");
        let rest = body.strip_prefix(&sse(&[A])).unwrap();
        assert!(
            rest.starts_with("data: {\"error\":") && rest.contains(code),
            "{rest}"
        );
        assert!(
            rest.ends_with("}\n\n") && rest.matches("\n\n").count() == 1,
            "{rest}"
        );
        assert_eq!(
            fleet.metric("gateway_stream_truncated_total{replica=\"a\"}"),
            1.0
        );
        assert_eq!(fleet.outcome("a", outcome), 1.0, "{outcome}");
        assert_eq!(fleet.open_requests(), 0.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_finish_reason_is_an_end_even_without_the_last_word() {
    // RC-105: what breaks after the answer is no loss. RC-102: the text [DONE] within a chunk is text.
    let text = r#"{"choices":[{"index":0,"delta":{"content":"[DONE]"}}]}"#;
    for steps in [
        vec![stream_head(), event(text), event(STOP), end()],
        vec![stream_head(), event(text), event(STOP), Step::Drop],
    ] {
        let fleet = one(move |_| steps.clone());
        assert_eq!(ask(&fleet).await.body, sse(&[text, STOP]));
        assert_eq!(fleet.outcome("a", "ok"), 1.0);
    }
    // Of two answers asked for, one finish reason is not the end.
    let fleet = one(|_| vec![stream_head(), event(A), event(STOP), end()]);
    let two = chat(&["x"]).replace("\"model\"", r#""n":2,"model""#);
    assert!(fleet.ask(&[], &two).await.body.contains("answer_truncated"));
}

#[tokio::test(start_paused = true)]
async fn a_replicas_error_object_ends_the_stream_and_counts_against_it() {
    // RC-116
    let error = r#"{"error":{"message":"engine died","code":500}}"#;
    let fleet = one(move |_| stream(&[A, error, "[DONE]"]));
    assert_eq!(ask(&fleet).await.body, sse(&[A, error]));
    assert_eq!(
        fleet.metric("gateway_stream_errors_total{replica=\"a\"}"),
        1.0
    );
    assert_eq!(fleet.outcome("a", "upstream_error"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_end_is_cut_off_at_its_bound() {
    let piece = "x".repeat(64 << 10);
    let fleet = one(move |_| {
        let mut steps = vec![stream_head(), chunk("data: ")];
        steps.extend(std::iter::repeat_n(chunk(&piece), 20));
        steps
    });
    assert!(ask(&fleet).await.body.contains("event_too_large"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_stops_its_replica() {
    // RC-108: in the middle of the answer, before its head, and before its first event.
    for (steps, reads) in [
        (vec![stream_head(), event(A), event(A), Step::Hang], Some(2)),
        (vec![stream_head(), Step::Hang], Some(0)),
        (vec![Step::Hang], None),
    ] {
        let fleet = one(move |_| steps.clone());
        let body = chat(&["x"]);
        if let Some(reads) = reads {
            let mut response = fleet.open(&[], &body).await;
            for _ in 0..reads {
                response.body_mut().frame().await.unwrap().unwrap();
            }
            assert_eq!(fleet.open_requests(), 2.0);
        } else {
            let leaving = tokio::time::timeout(Duration::from_secs(1), fleet.open(&[], &body));
            assert!(leaving.await.is_err());
        }
        let left = tokio::time::Instant::now();
        while fleet.replicas[0].log.lock().unwrap().cancelled == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(left.elapsed() < Duration::from_millis(200));
        assert_eq!(fleet.open_requests(), 0.0);
        assert_eq!(fleet.outcome("a", "client_closed"), 1.0);
        assert_eq!(fleet.outcome("a", "upstream_error"), 0.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_slows_its_replica_and_fills_no_buffer() {
    let fleet = one(|_| {
        let mut steps = vec![stream_head()];
        steps.extend(std::iter::repeat_n(event(&format!("{:1000}", "")), 1000));
        steps.extend([wait(0), event(STOP), event("[DONE]"), end()]);
        steps
    });
    let mut response = fleet.open(&[], &chat(&["x"])).await;
    response.body_mut().frame().await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    // The replica has written what fits the pipe and one read, not its megabyte.
    assert!(fleet.replicas[0].log.lock().unwrap().cancelled == 0);
    let answer = read(response).await;
    assert!(answer.body.ends_with(&sse(&[STOP, "[DONE]"])));
    assert_eq!(answer.body.matches("data:").count(), 1001);
}

#[tokio::test(start_paused = true)]
async fn the_first_token_is_neither_the_role_nor_only_content() {
    // RC-147
    let delta = |delta: &str| event(&format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#));
    let steps = vec![
        stream_head(),
        wait(50),
        delta(r#"{"role":"assistant","content":""}"#),
        wait(350),
        delta(r#"{"reasoning":"a"}"#),
        wait(1600),
        delta(r#"{"content":"B"}"#),
        wait(100),
        event(STOP),
        event("[DONE]"),
        end(),
    ];
    let fleet = one(move |_| steps.clone());
    let _ = ask(&fleet).await;
    for (series, seconds) in [("ttft", 0.4), ("first_content", 2.0), ("inter_chunk", 1.6)] {
        let name = |part: &str| format!("gateway_{series}_seconds_{part}{{replica=\"a\"}}");
        assert_eq!(fleet.metric(&name("count")), 1.0, "{series}");
        assert!(
            (fleet.metric(&name("sum")) - seconds).abs() < 1e-6,
            "{series}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn every_ending_is_counted_once_and_leaves_nothing_in_flight() {
    // RC-151
    let fleet = one(|n| match n {
        0..3 => stream(&[A, STOP, "[DONE]"]),
        3..6 => vec![stream_head(), event(A), Step::Hang],
        6..8 => vec![stream_head(), event(A), Step::Drop],
        _ => vec![stream_head(), Step::Hang],
    });
    for n in 0..9 {
        let response = fleet.open(&[], &chat(&["x"])).await;
        if (3..6).contains(&n) {
            drop(response);
        } else {
            let _ = read(response).await;
        }
    }
    let large = "x".repeat(fleet.body_limit() + 1);
    assert_eq!(fleet.ask(&[], &large).await.status, 413);
    assert_eq!(fleet.open_requests(), 0.0);
    let outcomes = ["ok", "client_closed", "upstream_error", "timeout"];
    assert_eq!(
        outcomes.map(|outcome| fleet.outcome("a", outcome)),
        [3.0, 3.0, 2.0, 1.0]
    );
    assert_eq!(fleet.outcome("none", "rejected"), 1.0);
}

/// What a client reads when the replica's bytes come cut at these places.
fn relayed(bytes: &str, cuts: &[usize]) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let mut steps = vec![stream_head()];
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % bytes.len()).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.dedup();
    for pair in cuts.windows(2) {
        steps.extend([chunk(&bytes[pair[0]..pair[1]]), wait(1)]);
    }
    steps.push(end());
    runtime.block_on(async {
        let mut response = one(move |_| steps.clone()).open(&[], &chat(&["x"])).await;
        let mut text = String::new();
        while let Some(frame) = response.body_mut().frame().await {
            let data = frame.unwrap().into_data().unwrap();
            // Whatever leaves is whole events.
            let mut cutter = FrameCutter::new();
            cutter.push(data.clone());
            while cutter.next_frame().unwrap().is_some() {}
            assert!(cutter.finish().is_empty());
            text.push_str(std::str::from_utf8(&data).unwrap());
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn cuts_of_the_replicas_bytes_mean_nothing(cuts in proptest::collection::vec(0_usize..1000, 0..8)) {
        let comment = ": ping\n\n";
        let bytes = format!("{comment}{}", sse(&[A, A, STOP, USAGE, "[DONE]"]));
        let expected = format!("{comment}{}", sse(&[A, A, STOP, "[DONE]"]));
        prop_assert_eq!(relayed(&bytes, &cuts), expected);
    }
}
