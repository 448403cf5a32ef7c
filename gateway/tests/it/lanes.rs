//! Lanes: rules choose the pool, and a pool without a ready replica says so.

use crate::fleet::{Fleet, chat};
use crate::replica::{STOP, Scripted, stream};

const POLICY: &str = r#"
version = 1
[[pools]]
name = "big"
replicas = ["b"]
[[pools]]
name = "small"
replicas = ["a", "c"]
[[lanes]]
name = "usual"
pool = "small"
[[lanes]]
name = "long"
pool = "big"
[[rules]]
name = "odd"
when = "1 / request.max_tokens > 1"
lane = "long"
[[rules]]
name = "research"
when = "request.header['x-team'] == 'research'"
lane = "long"
"#;

const RESEARCH: (&str, &str) = ("x-team", "research");

fn fleet(folder: &tempfile::TempDir) -> Fleet {
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, POLICY).unwrap();
    let replicas = ["a", "b", "c"].map(Scripted::well);
    Fleet::with(replicas.into(), |config| config.policy = Some(file))
}

#[tokio::test(start_paused = true)]
async fn a_rule_chooses_the_pool_and_a_session_keeps_its_one_pin() {
    let folder = tempfile::tempdir().unwrap();
    let fleet = fleet(&folder);
    for session in ["s", "t", "u", "v"] {
        let name = ("x-session-id", session);
        let body = chat(&[session]);
        let first = fleet.ask(&[name], &body).await;
        assert_eq!(first.header("x-pinion-lane"), "usual");
        assert_ne!(first.replica(), "b");
        let long = fleet.ask(&[name, RESEARCH], &body).await;
        assert_eq!(
            (long.header("x-pinion-lane"), long.replica()),
            ("long", "b")
        );
        let again = fleet.ask(&[name], &body).await;
        assert_eq!(
            (again.replica(), again.reason()),
            (first.replica(), "pin_held")
        );
    }
    let text = fleet.known.metrics.text();
    assert!(text.contains("gateway_policy_rule_errors_total 12\n"));
}

#[tokio::test(start_paused = true)]
async fn a_conversation_without_a_name_returns_to_its_home_after_a_turn_in_another_lane() {
    let folder = tempfile::tempdir().unwrap();
    let fleet = fleet(&folder);
    let turns = [&["x"][..], &["x", "1", "y"], &["x", "1", "y", "2", "z"]];
    let first = fleet.ask(&[], &chat(turns[0])).await;
    let second = fleet.ask(&[RESEARCH], &chat(turns[1])).await;
    assert_eq!(second.replica(), "b");
    let third = fleet.ask(&[], &chat(turns[2])).await;
    assert_eq!(
        (third.replica(), third.reason()),
        (first.replica(), "prefix_seen")
    );
}

#[tokio::test(start_paused = true)]
async fn a_pool_without_a_ready_replica_is_a_503_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let fleet = fleet(&folder);
    fleet.known.fleet.replicas()[1].on_unreachable("gone");
    let answer = fleet.ask(&[RESEARCH], &chat(&["x"])).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (503, "no_replica_in_pool")
    );
    assert_eq!(answer.header("retry-after"), "2");
    assert_eq!(answer.header("x-pinion-lane"), "long");
    assert!(
        answer
            .body
            .contains("no replica of the pool `big` is ready"),
        "{}",
        answer.body
    );
    assert_eq!(fleet.ask(&[], &chat(&["x"])).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_names_no_configured_replica_is_refused_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let fleet = fleet(&folder);
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, POLICY.replace("\"b\"", "\"bb\"")).unwrap();
    let why = fleet.known.policy.reload().unwrap_err();
    assert!(
        why.contains(":5:13: `pools[0].replicas[0]` is `\"bb\"`, expected a replica that the gateway has; did you mean `b`?"),
        "{why}"
    );
    let answer = fleet.ask(&[RESEARCH], &chat(&["x"])).await;
    assert_eq!(answer.replica(), "b");
}

/// A replica whose prompts are 10 tokens long, of which 4 were cached.
fn counting(name: &'static str) -> Scripted {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4}}}"#;
    Scripted::new(name, move |_| stream(&[STOP, usage, "[DONE]"]))
}

#[tokio::test(start_paused = true)]
async fn tokens_are_counted_by_lane() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, POLICY).unwrap();
    let replicas = ["a", "b", "c"].map(counting);
    let fleet = Fleet::with(replicas.into(), |config| config.policy = Some(file.clone()));
    let prompts = |lane: &str, replica: &str| {
        fleet.metric(&format!(
            "gateway_prompt_tokens_total{{lane=\"{lane}\",replica=\"{replica}\"}}"
        ))
    };
    // Both lanes are there before any request, so that a rate begins at 0.
    let text = fleet.known.metrics.text();
    assert!(text.contains("gateway_cached_tokens_total{lane=\"long\",replica=\"a\"} 0\n"));
    for _ in 0..3 {
        fleet.ask(&[RESEARCH], &chat(&["x"])).await;
    }
    fleet.ask(&[], &chat(&["x"])).await;
    assert_eq!(prompts("long", "b"), 30.0);
    assert_eq!(prompts("usual", "a") + prompts("usual", "c"), 10.0);
    assert_eq!(prompts("", "b"), 0.0);
    let state = fleet.known.describe(false);
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    let b = &state["replicas"][1];
    assert_eq!(b["prompt_tokens"], 30);
    assert_eq!(b["lanes"]["long"]["cached_tokens"], 12);
    assert_eq!(b["lanes"]["usual"]["prompt_tokens"], 0);
    assert!(b["lanes"]["long"]["prediction_error"].as_f64().unwrap() > 0.0);
    // A lane that a reload brings has its series at once.
    let renamed = POLICY.replace("\"long\"", "\"longer\"");
    std::fs::write(&file, renamed).unwrap();
    let policy = fleet.known.policy.reload().unwrap();
    fleet.known.fit(policy.policy());
    fleet.ask(&[RESEARCH], &chat(&["x"])).await;
    assert_eq!(prompts("longer", "b"), 10.0);
}

#[tokio::test(start_paused = true)]
async fn a_policy_whose_lanes_leave_a_replica_out_forgets_its_pins_and_counts_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, "version = 1\n").unwrap();
    let replicas = ["a", "b"].map(Scripted::well);
    let fleet = Fleet::with(replicas.into(), |config| config.policy = Some(file.clone()));
    let mut at_b = 0;
    for n in 0..12 {
        let name = format!("s{n}");
        let answer = fleet.ask(&[("x-session-id", &name)], &chat(&[&name])).await;
        at_b += usize::from(answer.replica() == "b");
    }
    assert!(at_b > 0 && at_b < 12, "{at_b}");
    let lane = "version = 1\n[[pools]]\nname = \"p\"\nreplicas = [\"a\"]\n[[lanes]]\nname = \"l\"\npool = \"p\"\n";
    std::fs::write(&file, lane).unwrap();
    let policy = fleet.known.policy.reload().unwrap();
    assert_eq!(fleet.known.fit(policy.policy()), at_b);
    assert_eq!(fleet.known.sessions.len(), 12 - at_b);
    // Placed anew, and pinned there.
    for turn in 0..2 {
        for n in 0..12 {
            let name = format!("s{n}");
            let answer = fleet.ask(&[("x-session-id", &name)], &chat(&[&name])).await;
            assert_eq!(answer.replica(), "a");
            assert!(
                turn == 0 || answer.reason() == "pin_held",
                "{}",
                answer.reason()
            );
        }
    }
    assert_eq!(fleet.known.sessions.len(), 12);
}
