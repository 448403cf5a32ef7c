//! A conversation stays where its prefix is.

use std::collections::BTreeMap;

use crate::fleet::{Fleet, chat, told};
use crate::replica::{Reach, Scripted};

fn three() -> Fleet {
    Fleet::new(vec![
        Scripted::well("a"),
        Scripted::well("b"),
        Scripted::well("c"),
    ])
}

/// The replicas and reasons of some turns, each turn being (headers, body).
async fn turns(fleet: &Fleet, turns: &[(&[(&str, &str)], String)]) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    for (headers, body) in turns {
        let answer = fleet.ask(headers, body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        seen.push((answer.replica().to_owned(), answer.reason().to_owned()));
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn a_session_named_by_header_is_pinned_whatever_it_says() {
    let fleet = three();
    let header: &[(&str, &str)] = &[("x-session-id", "s1")];
    let seen = turns(
        &fleet,
        &[
            (header, chat(&["x"])),
            (header, chat(&["y"])),
            (header, chat(&["z"])),
        ],
    )
    .await;
    assert_eq!(
        seen.iter().map(|(_, r)| r.as_str()).collect::<Vec<_>>(),
        ["session_home", "pin_held", "pin_held"]
    );
    assert!(seen.iter().all(|(replica, _)| *replica == seen[0].0));
    assert_eq!(
        fleet.metric("gateway_session_source_total{source=\"header\"}"),
        3.0
    );
    assert_eq!(fleet.known.sessions.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_named_in_the_body_is_pinned() {
    let fleet = three();
    let body = |text: &str| {
        chat(&[text]).replace("\"model\"", r#""metadata":{"session_id":"s2"},"model""#)
    };
    let seen = turns(&fleet, &[(&[], body("x")), (&[], body("y"))]).await;
    assert_eq!(seen[1].1, "pin_held");
    assert_eq!(seen[0].0, seen[1].0);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_without_any_id_finds_its_last_turn() {
    let fleet = three();
    let seen = turns(
        &fleet,
        &[
            (&[], chat(&["hello"])),
            (&[], chat(&["hello", "ok", "more"])),
            (&[], chat(&["hello", "ok", "more", "ok", "and more"])),
        ],
    )
    .await;
    let reasons: Vec<_> = seen.iter().map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(reasons, ["prefix_home", "prefix_seen", "prefix_seen"]);
    assert!(seen.iter().all(|(replica, _)| *replica == seen[0].0));
    assert_eq!(
        fleet.metric("gateway_session_source_total{source=\"none\"}"),
        3.0
    );
}

#[tokio::test(start_paused = true)]
async fn sessions_spread_and_only_those_of_a_dead_replica_move() {
    let fleet = three();
    let ask = async |session: &str| {
        let answer = fleet
            .ask(&[("x-session-id", session)], &chat(&[session]))
            .await;
        assert_eq!(answer.status, 200);
        answer.replica().to_owned()
    };
    let sessions: Vec<String> = (0..30).map(|n| format!("session {n}")).collect();
    let mut homes = BTreeMap::new();
    for session in &sessions {
        homes.insert(session, ask(session).await);
    }
    for name in ["a", "b", "c"] {
        let here = homes.values().filter(|home| **home == name).count();
        assert!((5..=15).contains(&here), "{here} of 30 at {name}");
    }
    fleet.replicas[1].reach(Reach::Refused);
    let mut moved_to = Vec::new();
    for session in &sessions {
        let now = ask(session).await;
        if homes[session] == "b" {
            assert_ne!(now, "b");
            moved_to.push(now.clone());
            homes.insert(session, now);
        } else {
            assert_eq!(now, homes[session]);
        }
    }
    assert!(
        moved_to.contains(&"a".into()) && moved_to.contains(&"c".into()),
        "{moved_to:?}"
    );
    // Each goes on where it went: a pin is not given up because its old replica came back.
    fleet.replicas[1].reach(Reach::Open);
    fleet.known.fleet.replicas()[1].on_probe_ok(told("second"));
    for session in &sessions {
        assert_eq!(ask(session).await, homes[session]);
    }
    assert_eq!(
        fleet.metric("gateway_replica_cold_starts_total{replica=\"b\"}"),
        1.0
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_for_an_unknown_model_is_refused() {
    // RC-162
    let fleet = three();
    fleet.tell_models(0, &["lamp-3b"]);
    let body = r#"{"model":"tide-9b","messages":[]}"#;
    let answer = fleet.ask(&[], body).await;
    assert_eq!(
        (answer.status, answer.code()),
        (404, "model_not_found".into())
    );
    assert!(answer.body.contains("lamp-3b"), "{}", answer.body);
    assert_eq!(answer.reason(), "model_not_found");
    assert_eq!(fleet.outcome("none", "rejected"), 1.0);
    // Naming none goes anywhere.
    assert_eq!(fleet.ask(&[], r#"{"messages":[]}"#).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_model_is_asked_for_only_where_it_is_served() {
    let fleet = three();
    fleet.tell_models(0, &["m"]);
    fleet.tell_models(1, &["other"]);
    fleet.tell_models(2, &["other"]);
    for session in 0..10 {
        let session = session.to_string();
        let answer = fleet
            .ask(&[("x-session-id", &session)], &chat(&["x"]))
            .await;
        assert_eq!(answer.replica(), "a");
    }
}

#[tokio::test(start_paused = true)]
async fn probes_make_replicas_ready_and_learn_their_models() {
    let fleet = Fleet::new(vec![Scripted::well("a"), Scripted::well("b")]);
    let [a, b] = fleet.known.fleet.replicas() else {
        panic!("two replicas")
    };
    a.on_unreachable("test");
    b.on_unreachable("test");
    assert_eq!(
        fleet.ask(&[], &chat(&["x"])).await.code(),
        "no_replica_ready"
    );
    fleet.replicas[1].reach(Reach::Refused);
    fleet.probe();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert!(a.is_ready() && !b.is_ready());
    assert_eq!(fleet.known.fleet.models().names(), "m");
    fleet.replicas[1].reach(Reach::Open);
    fleet.replicas[0].reach(Reach::Silent);
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    assert!(!a.is_ready() && b.is_ready());
    let state: serde_json::Value = serde_json::from_slice(&fleet.known.describe(false)).unwrap();
    assert_eq!(state["replicas"][1]["instance"], "one");
    assert_eq!(state["policy"]["file"], "built in");
}

#[tokio::test(start_paused = true)]
async fn rc_070_one_session_s_name_that_begins_with_another_s_is_another_session() {
    let fleet = Fleet::new(vec![Scripted::well("a"), Scripted::well("b")]);
    let ask = async |name: &str| {
        let answer = fleet.ask(&[("x-session-id", name)], &chat(&[name])).await;
        (answer.replica().to_owned(), answer.reason().to_owned())
    };
    // Each is bound while the other replica is away.
    for (name, away) in [("team-1", 1), ("team-12", 0)] {
        let other = &fleet.known.fleet.replicas()[away];
        other.on_unreachable("test");
        ask(name).await;
        other.on_probe_ok(told("first"));
    }
    let held = "pin_held".to_owned();
    assert_eq!(ask("team-12").await, ("b".to_owned(), held.clone()));
    assert_eq!(ask("team-1").await, ("a".to_owned(), held));
}
