//! A replica dies: its stream ends with an error event, its sessions move, nobody else notices.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::{Value, json};
use system_tests::{
    assets,
    fleet::{Fleet, signal_pid},
    http,
};

use crate::support::{Conversation, guide};

#[tokio::test]
async fn a_dead_replica_moves_its_own_sessions_and_nobody_elses() {
    let fleet = Fleet::up(&assets::smollm2(), 2).await;
    let mut talks: BTreeMap<String, Conversation> = (0..6)
        .map(|i| {
            let name = format!("s-{i}");
            let talk = Conversation::new(&guide(&format!("Port{i}"))[..300], Some(&name));
            (name, talk)
        })
        .collect();
    let mut homes = BTreeMap::new();
    for (name, talk) in &mut talks {
        homes.insert(
            name.clone(),
            talk.turn(&fleet, "What opens first?").await.replica,
        );
    }
    let victim = homes["s-0"].clone();
    assert!(
        homes.values().any(|h| *h != victim),
        "both replicas have sessions: {homes:?}"
    );

    let mut request = talks
        .get_mut("s-0")
        .expect("s-0")
        .next("Tell me all you know, at length.", 400);
    request["stream"] = json!(true);
    let headers = [("x-session-id", "s-0")];
    let mut stream = http::open(
        fleet.listen,
        "/v1/chat/completions",
        &headers,
        Some(&request),
    )
    .await
    .expect("a stream");
    let mut text = String::new();
    while text.len() < 20 {
        text.push_str(&stream.next().await.expect("the stream goes on").content());
    }
    signal_pid(fleet.replica(&victim).pid, Signal::KILL);
    let rest = stream.rest().await;
    let last = rest.last().expect("a stream that breaks says so");
    let error: Value =
        serde_json::from_str(&last.data).unwrap_or_else(|_| panic!("an error event, not {last:?}"));
    assert!(error["error"]["message"].is_string(), "{error}");
    assert!(
        !rest.iter().any(|e| e.data == "[DONE]"),
        "a broken stream does not claim to be done"
    );

    for (name, talk) in &mut talks {
        let turn = talk.turn(&fleet, "And what closes last?").await;
        if homes[name] == victim {
            assert_ne!(turn.replica, victim, "{name} moved off the dead replica");
        } else {
            assert_eq!(turn.replica, homes[name], "{name} did not notice");
            assert!(turn.cached_tokens > 0, "{name} still finds its prefix");
        }
    }
}
