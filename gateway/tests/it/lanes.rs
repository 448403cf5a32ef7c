//! Lanes: rules choose the pool, and a pool without a ready replica says so.

use crate::fleet::{Fleet, chat};
use crate::replica::Scripted;

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
