//! Budgets of thinking, from the official client through the gateway to the built-in model, kept to the token.

use std::process::Command;

use serde_json::{Value, json};
use system_tests::{
    assets,
    fleet::{self, Fleet},
    http, prom,
};

use crate::support::{ask, message};

/// Its answer takes more than 16 and fewer than 256 tokens of thinking.
const QUESTION: &str = "What is 47*36?";
const RIGHT: &str = "1692";
/// What the built-in model was taught to read where its thinking is ended.
const TIME_UP: &str = "Time is up.";

/// One object per answer: for each budget a whole one and a streamed one.
fn ask_officially(fleet: &Fleet, budgets: &[u64]) -> Vec<Value> {
    let output = Command::new(assets::python())
        .arg(assets::source("clients/budgets.py"))
        .args([&format!("http://{}", fleet.listen), QUESTION])
        .args(budgets.iter().map(u64::to_string))
        .output()
        .expect("python runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object per answer"))
        .collect()
}

#[tokio::test]
async fn budgets_are_kept_to_the_token() {
    let fleet = Fleet::up(&assets::builtin(), 2).await;
    let rows = ask_officially(&fleet, &[0, 16, 256]);
    assert_eq!(rows.len(), 6);
    for (budget, pair) in [0u64, 16, 256].into_iter().zip(rows.chunks(2)) {
        assert_eq!(pair[0], pair[1], "the whole answer and the stream");
        let row = &pair[0];
        let thought = row["reasoning_tokens"].as_u64().expect("always there");
        let text = row["reasoning"].as_str().expect("reasoning");
        assert_eq!(row["finish_reason"], "stop", "{row}");
        assert!(!row["content"].as_str().expect("content").contains("think>"));
        if budget < 256 {
            assert_eq!(thought, budget, "{row}");
            assert!(text.ends_with(TIME_UP), "{row}");
        } else {
            assert!((17..256).contains(&thought), "{row}");
            assert!(!text.contains(TIME_UP), "{row}");
            assert_eq!(row["content"], RIGHT, "{row}");
        }
    }
    let cut = rows[2]["reasoning"].as_str().expect("reasoning");
    let whole = rows[4]["reasoning"].as_str().expect("reasoning");
    let kept = cut.trim_end_matches(TIME_UP).trim_end_matches('\n');
    assert!(whole.starts_with(kept), "{kept:?} of {whole:?}");
    let mut closed = 0.0;
    for replica in fleet.replicas() {
        let metrics = fleet::text(replica.listen, "/metrics").await;
        let label = ["outcome=\"closed\""];
        closed += prom::sum(&metrics, "replica_thinking_budgets_total", &label);
    }
    assert!((closed - 4.0).abs() < f64::EPSILON, "{closed}");
}

#[tokio::test]
async fn a_replica_alone_keeps_room_for_the_answer_and_counts() {
    let (_replica, addr) = fleet::lone_replica(&assets::builtin(), &[]).await;
    let mut request = ask(&json!([message("user", QUESTION)]), 40);
    request["thinking_token_budget"] = json!(40);
    let answer = http::chat(addr, &[], &request).await.expect("an answer");
    let answer = answer.json();
    // The same budget and maximum leave nothing to answer with, so the budget gives way.
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "stop", "{answer}");
    assert!(choice["message"]["content"].is_string(), "{answer}");
    let metrics = fleet::text(addr, "/metrics").await;
    for outcome in ["reached", "closed"] {
        let label = format!("outcome=\"{outcome}\"");
        let seen = prom::sum(&metrics, "replica_thinking_budgets_total", &[&label]);
        assert!((seen - 1.0).abs() < f64::EPSILON, "{outcome}: {seen}");
    }

    let thought = |answer: &Value| {
        answer["usage"]["completion_tokens_details"]["reasoning_tokens"]
            .as_u64()
            .expect("always there")
    };
    let mut longer = ask(&json!([message("user", QUESTION)]), 600);
    let plain = http::chat(addr, &[], &longer).await.expect("an answer");
    longer["min_thinking_tokens"] = json!(thought(&plain.json()) + 1);
    let longer = http::chat(addr, &[], &longer).await.expect("an answer");
    assert!(thought(&longer.json()) > thought(&plain.json()));

    let mut refused = request.clone();
    refused["thinking_token_budget"] = json!(-2);
    let refused = http::chat(addr, &[], &refused).await.expect("an answer");
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"]["param"], "thinking_token_budget");
}
