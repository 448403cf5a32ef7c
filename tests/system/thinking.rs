//! The built-in model in both lanes: it thinks in a field of its own and is right, or answers at once.

use std::process::Command;

use serde_json::{Value, json};
use system_tests::{
    assets,
    fleet::{self, Fleet},
    http, prom,
};

use crate::support::{ask, message};

/// Asked of a model that cannot know the product and can work it out.
const QUESTION: &str = "What is 47*36?";
const RIGHT: &str = "1692";
/// More than any of its answers takes.
const TOKENS: u32 = 400;

fn request(thinks: Option<bool>) -> Value {
    let mut request = ask(&json!([message("user", QUESTION)]), TOKENS);
    if let Some(thinks) = thinks {
        request["chat_template_kwargs"] = json!({"enable_thinking": thinks});
    }
    request
}

async fn whole(fleet: &Fleet, request: &Value) -> Value {
    let reply = http::chat(fleet.listen, &[], request)
        .await
        .expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.json());
    reply.json()
}

/// The same answer, put together from a stream: reasoning, content, usage.
async fn streamed(fleet: &Fleet, request: &Value) -> (String, String, Value) {
    let mut request = request.clone();
    request["stream"] = json!(true);
    request["stream_options"] = json!({"include_usage": true});
    let stream = http::open(fleet.listen, "/v1/chat/completions", &[], Some(&request))
        .await
        .expect("a stream");
    let events = stream.rest().await;
    let reasoning = events.iter().map(http::Event::reasoning).collect();
    let content = events.iter().map(http::Event::content).collect();
    let first_content = events.iter().position(|e| !e.content().is_empty());
    let last_reasoning = events.iter().rposition(|e| !e.reasoning().is_empty());
    assert!(last_reasoning < first_content, "reasoning comes first");
    assert_eq!(events.last().expect("events").data, "[DONE]");
    let usage = &events[events.len() - 2].data;
    let usage: Value = serde_json::from_str(usage).expect("a chunk of usage");
    (reasoning, content, usage["usage"].clone())
}

fn reasoning_tokens(usage: &Value) -> u64 {
    usage["completion_tokens_details"]["reasoning_tokens"]
        .as_u64()
        .expect("reasoning_tokens is always there")
}

#[tokio::test]
async fn thinking_is_right_and_apart_and_not_thinking_is_quick() {
    let fleet = Fleet::up(&assets::builtin(), 2).await;
    let models = http::get(fleet.listen, "/v1/models")
        .await
        .expect("models")
        .json();
    assert_eq!(models["data"][0]["id"], "abacus");

    // Thinking, which is what the template does where nobody says.
    for thinks in [None, Some(true)] {
        let answer = whole(&fleet, &request(thinks)).await;
        let said = &answer["choices"][0]["message"];
        assert_eq!(said["content"], RIGHT, "{answer}");
        let thought = said["reasoning_content"].as_str().expect("reasoning");
        assert!(thought.lines().count() > 3, "a scratchpad: {thought}");
        assert!(!thought.contains("think>"), "{thought}");
        let tokens = answer["usage"]["completion_tokens"].as_u64();
        assert!(reasoning_tokens(&answer["usage"]) > 20);
        assert!(tokens.expect("tokens") > reasoning_tokens(&answer["usage"]));
        let (reasoning, content, usage) = streamed(&fleet, &request(thinks)).await;
        assert_eq!((reasoning.as_str(), content.as_str()), (thought, RIGHT));
        assert_eq!(reasoning_tokens(&usage), reasoning_tokens(&answer["usage"]));
    }

    let answer = whole(&fleet, &request(Some(false))).await;
    let said = &answer["choices"][0]["message"];
    assert_eq!(said.get("reasoning_content"), None, "{answer}");
    assert_eq!(reasoning_tokens(&answer["usage"]), 0);
    let at_once = said["content"].as_str().expect("content");
    assert!(!at_once.is_empty() && at_once.bytes().all(|b| b.is_ascii_digit()));
    let (reasoning, content, _) = streamed(&fleet, &request(Some(false))).await;
    assert_eq!((reasoning.as_str(), content.as_str()), ("", at_once));
}

#[tokio::test]
async fn an_answer_cut_while_it_thinks_has_no_content() {
    let (_replica, addr) = fleet::lone_replica(&assets::builtin(), &[]).await;
    let mut cut = request(Some(true));
    cut["max_tokens"] = json!(10);
    let answer = http::chat(addr, &[], &cut).await.expect("an answer").json();
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "length", "{answer}");
    assert_eq!(choice["message"]["content"], Value::Null);
    assert!(choice["message"]["reasoning_content"].is_string());
    // A stop string that the thought is full of ends the content alone.
    let mut stopped = request(Some(true));
    stopped["stop"] = json!(["\n", "9"]);
    let answer = http::chat(addr, &[], &stopped)
        .await
        .expect("an answer")
        .json();
    assert_eq!(answer["choices"][0]["message"]["content"], "16", "{answer}");
    assert!(reasoning_tokens(&answer["usage"]) > 20);
}

#[tokio::test]
async fn a_conversation_of_thinking_turns_finds_itself_in_the_cache() {
    let fleet = Fleet::up(&assets::builtin(), 2).await;
    let mut messages = vec![message("system", "You are a concise assistant.")];
    let (mut home, mut cached) = (String::new(), 0);
    for question in [QUESTION, "What is 58*23?", "What is 345+678?"] {
        messages.push(message("user", question));
        let request = ask(&Value::from(messages.clone()), TOKENS);
        let reply = http::chat(fleet.listen, &[], &request)
            .await
            .expect("an answer");
        let answer = reply.json();
        let said = answer["choices"][0]["message"].clone();
        assert!(said["reasoning_content"].is_string(), "{answer}");
        // Sent back as it came, reasoning and all; the template drops what was thought before the last question.
        messages.push(said);
        let replica = reply.header("x-pinion-replica").to_owned();
        assert!(home.is_empty() || home == replica, "{home}, then {replica}");
        home = replica;
        let now = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            .as_u64()
            .expect("cached_tokens");
        assert!(cached == 0 || now > cached, "{cached}, then {now}");
        cached = now;
    }
    assert!(cached > 0);
    assert!(prom::sum(&fleet.metrics().await, "gateway_cached_tokens_total", &[]) > 0.0);
}

#[tokio::test]
async fn the_official_client_reads_both_fields() {
    let fleet = Fleet::up(&assets::builtin(), 1).await;
    let output = Command::new(assets::python())
        .arg(assets::source("clients/reasoning.py"))
        .args([&format!("http://{}", fleet.listen), QUESTION])
        .output()
        .expect("python runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object per answer"))
        .collect();
    assert_eq!(rows.len(), 4, "{text}");
    for pair in rows.chunks(2) {
        let (whole, streamed) = (&pair[0], &pair[1]);
        for field in ["reasoning", "content", "reasoning_tokens"] {
            assert_eq!(whole[field], streamed[field], "{text}");
        }
        let thinks = whole["thinks"] == true;
        assert_eq!(whole["reasoning"].is_string(), thinks, "{text}");
        assert_eq!(whole["reasoning_tokens"] != 0, thinks, "{text}");
        assert!(!thinks || whole["content"] == RIGHT, "{text}");
    }
}
