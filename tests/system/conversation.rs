//! A six-turn conversation through the official client: one replica, growing hits, a warm second turn.

use std::process::Command;

use serde_json::Value;
use system_tests::{assets, fleet::Fleet, prom};

use crate::support::guide;

const TURNS: usize = 6;

fn converse(fleet: &Fleet, session: &str, system: &str) -> Vec<Value> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("system.txt");
    std::fs::write(&file, system).expect("a writable folder");
    let output = Command::new(assets::python())
        .arg(assets::source("clients/conversation.py"))
        .args([
            &format!("http://{}", fleet.listen),
            &TURNS.to_string(),
            session,
        ])
        .arg(&file)
        .output()
        .expect("python runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let turns: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object per turn"))
        .collect();
    assert_eq!(turns.len(), TURNS);
    turns
}

fn number(turn: &Value, field: &str) -> f64 {
    turn[field]
        .as_f64()
        .unwrap_or_else(|| panic!("no number `{field}` in {turn}"))
}

/// What must hold of any conversation, however the gateway came to know that it is one.
fn check(turns: &[Value]) {
    let first = &turns[0];
    assert_eq!(
        number(first, "cached_tokens"),
        0.0,
        "nobody had this prompt before: {first}"
    );
    for pair in turns.windows(2) {
        let (before, now) = (&pair[0], &pair[1]);
        assert_eq!(
            now["replica"], first["replica"],
            "a conversation stays put: {turns:#?}"
        );
        assert!(
            number(now, "cached_tokens") > number(before, "cached_tokens"),
            "each turn finds more of itself in the cache: {before} then {now}"
        );
        // All of the turn before but its unfinished block, the template's tail and what the tokenizer joined anew.
        assert!(
            number(now, "cached_tokens") + 48.0 >= number(before, "prompt_tokens"),
            "the whole turn before was there to reuse: {before} then {now}"
        );
    }
    for turn in turns {
        assert!(!turn["text"].as_str().expect("text").is_empty());
        assert!(["stop", "length"].contains(&turn["finish"].as_str().expect("finish_reason")));
        assert_eq!(number(turn, "reasoning_tokens"), 0.0);
    }
    let (cold, warm) = (number(first, "ttft_s"), number(&turns[1], "ttft_s"));
    assert!(
        warm < cold / 2.0,
        "a warm turn starts well before a cold one: {cold} s then {warm} s"
    );
}

#[tokio::test]
async fn a_conversation_stays_on_its_replica_with_and_without_a_session_id() {
    let fleet = Fleet::up(&assets::smollm2(), 2).await;
    let named = converse(&fleet, "talk-1", &guide("Norvik"));
    check(&named);
    assert_eq!(named[1]["reason"], "pin_held");
    let unnamed = converse(&fleet, "-", &guide("Selhaven"));
    check(&unnamed);

    let told: f64 = named
        .iter()
        .chain(&unnamed)
        .map(|t| number(t, "cached_tokens"))
        .sum();
    let metrics = fleet.metrics().await;
    assert_eq!(
        prom::sum(&metrics, "gateway_cached_tokens_total", &[]),
        told
    );
}
