//! What a newcomer does first: `gateway up`, a question, a look at the metrics, Ctrl-C.

use std::{path::Path, process::Command, time::Duration};

use rustix::process::Signal;
use serde_json::json;
use system_tests::{
    assets,
    fleet::{Fleet, Running, free_address},
    http, prom,
};

use crate::support::{ask, message};

#[tokio::test]
async fn up_answers_shows_its_hits_and_takes_everything_down() {
    let mut fleet = Fleet::up(&assets::smollm2(), 2).await;
    let models = http::get(fleet.listen, "/v1/models")
        .await
        .expect("models")
        .json();
    let model = models["data"][0]["id"]
        .as_str()
        .expect("a model id")
        .to_owned();

    let mut request = ask(
        &json!([message("user", "What is the capital of France?")]),
        24,
    );
    request["model"] = json!(model);
    let whole = http::chat(fleet.listen, &[], &request)
        .await
        .expect("an answer")
        .json();
    let answer = whole["choices"][0]["message"]["content"]
        .as_str()
        .expect("content");
    assert!(answer.contains("Paris"), "a real model answered: {answer}");

    // The same as a stream: the same text, a usage chunk only because it was asked for, and [DONE].
    request["stream"] = json!(true);
    request["stream_options"] = json!({"include_usage": true});
    let stream = http::open(fleet.listen, "/v1/chat/completions", &[], Some(&request))
        .await
        .expect("a stream");
    assert_eq!(
        stream.headers["content-type"]
            .to_str()
            .expect("ascii")
            .split(';')
            .next(),
        Some("text/event-stream")
    );
    let events = stream.rest().await;
    let text: String = events.iter().map(http::Event::content).collect();
    assert_eq!(text, answer);
    assert_eq!(events.last().expect("events").data, "[DONE]");
    let usage: Vec<_> = events
        .iter()
        .filter(|e| e.data.contains("\"prompt_tokens\":"))
        .collect();
    assert_eq!(usage.len(), 1);
    request["stream_options"] = json!(null);
    let events = http::open(fleet.listen, "/v1/chat/completions", &[], Some(&request))
        .await
        .expect("a stream")
        .rest()
        .await;
    assert!(
        !events.iter().any(|e| e.data.contains("\"prompt_tokens\":")),
        "the gateway's own question for usage stays its own"
    );

    let metrics = fleet.metrics().await;
    assert_eq!(
        prom::sum(&metrics, "gateway_requests_total", &["replica=\"replica-"]),
        3.0
    );
    assert!(prom::sum(&metrics, "gateway_cached_tokens_total", &[]) > 0.0);

    let pids: Vec<u32> = fleet.replicas().iter().map(|r| r.pid).collect();
    fleet.gateway.signal(Signal::INT);
    let status = fleet.gateway.ended(Duration::from_secs(20)).await;
    assert!(status.success(), "{status}: {}", fleet.gateway.log());
    for pid in pids {
        assert!(
            !Path::new(&format!("/proc/{pid}/exe")).exists(),
            "replica {pid} outlived its gateway"
        );
    }
}

#[tokio::test]
async fn up_ends_with_the_replicas_last_words_when_one_cannot_start() {
    let mut gateway = Running::start(
        Command::new(assets::binary("gateway"))
            .args([
                "up",
                "--model",
                "/nowhere/no-such-model.gguf",
                "--replicas",
                "2",
            ])
            .args([
                "--listen",
                &free_address().to_string(),
                "--admin-listen",
                &free_address().to_string(),
            ]),
    );
    let status = gateway.ended(Duration::from_secs(30)).await;
    assert!(!status.success());
    let log = gateway.log();
    assert!(log.contains("no-such-model.gguf"), "says which file: {log}");
}

#[tokio::test]
async fn a_client_that_goes_away_frees_its_replica() {
    let fleet = Fleet::up(&assets::smollm2(), 1).await;
    let mut request = ask(
        &json!([message(
            "user",
            "Write a very long story about a lighthouse."
        )]),
        1500,
    );
    request["stream"] = json!(true);
    request["ignore_eos"] = json!(true);
    let mut stream = http::open(fleet.listen, "/v1/chat/completions", &[], Some(&request))
        .await
        .expect("a stream");
    for _ in 0..4 {
        stream.next().await.expect("the stream goes on");
    }
    drop(stream);
    let replica = fleet.replicas()[0].listen;
    let mut running = f64::NAN;
    for _ in 0..50 {
        running = prom::sum(
            &system_tests::fleet::text(replica, "/metrics").await,
            "vllm:num_requests_running",
            &[],
        );
        if running == 0.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(running, 0.0, "generation stops when nobody reads");
    assert_eq!(
        prom::sum(&fleet.metrics().await, "gateway_in_flight", &[]),
        0.0
    );
}

#[tokio::test]
async fn sigterm_lets_a_running_answer_finish() {
    let mut fleet = Fleet::up(&assets::smollm2(), 2).await;
    let mut request = ask(
        &json!([message("user", "Count from one to thirty in words.")]),
        60,
    );
    request["stream"] = json!(true);
    request["ignore_eos"] = json!(true);
    let mut stream = http::open(fleet.listen, "/v1/chat/completions", &[], Some(&request))
        .await
        .expect("a stream");
    for _ in 0..3 {
        stream.next().await.expect("the stream goes on");
    }
    fleet.gateway.signal(Signal::TERM);
    let events = stream.rest().await;
    assert_eq!(
        events.last().expect("events").data,
        "[DONE]",
        "the answer in flight was finished"
    );
    assert!(fleet.gateway.ended(Duration::from_secs(20)).await.success());
}
