//! A policy file that changes under a running gateway: taken up whole, or not at all.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::fleet::chat;
use crate::listener::{Running, start};
use crate::replica::Scripted;

const FIRST: &str = "version = 1\n";
const SECOND: &str = "version = 1\n[session]\npins_max = 5\n";
const BAD: &str = "version = 1\n[sessions]\nagents = 7\n";

async fn gateway(file: &Path) -> Running {
    std::fs::write(file, FIRST).unwrap();
    let replicas = [Scripted::well("a"), Scripted::well("b")];
    start(&replicas, |config| config.policy = Some(file.to_owned())).await
}

async fn state(running: &Running) -> serde_json::Value {
    let (status, text) = running.page("/state").await;
    assert_eq!(status, 200);
    serde_json::from_str(&text).unwrap()
}

/// Waits until so many reloads have ended so.
async fn reloads(running: &Running, result: &str, count: u32) {
    let series = format!("gateway_policy_reloads_total{{result=\"{result}\"}} {count}\n");
    while !running.page("/metrics").await.1.contains(&series) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_good_file_is_taken_up_and_a_bad_one_leaves_what_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    let running = gateway(&file).await;
    let first = state(&running).await;
    assert_eq!(first["policy"]["file"], file.to_str().unwrap());
    assert_eq!(first["pins"]["sessions_max"], 1_000_000);
    assert!(
        running
            .ask(chat(&["x"]))
            .await
            .ends_with("data: [DONE]\n\n")
    );
    let remembered = running.known.prefixes.len();
    assert_eq!(remembered, 1);

    std::fs::write(&file, SECOND).unwrap();
    reloads(&running, "ok", 1).await;
    let second = state(&running).await;
    assert_eq!(second["pins"]["sessions_max"], 5);
    assert_ne!(second["policy"]["version"], first["policy"]["version"]);
    // What was remembered is still there.
    assert_eq!(running.known.prefixes.len(), remembered);

    std::fs::write(&file, BAD).unwrap();
    reloads(&running, "kept_old", 1).await;
    let third = state(&running).await;
    assert_eq!(third["pins"]["sessions_max"], 5);
    assert_eq!(third["policy"]["version"], second["policy"]["version"]);
    let why = third["policy"]["last_error"].as_str().unwrap();
    assert!(
        why.contains(":2:2: unknown key `sessions`; did you mean `session`?"),
        "{why}"
    );
    assert!(
        running
            .ask(chat(&["y"]))
            .await
            .ends_with("data: [DONE]\n\n")
    );

    std::fs::write(&file, FIRST).unwrap();
    reloads(&running, "ok", 2).await;
    let fourth = state(&running).await;
    assert_eq!(fourth["policy"]["version"], first["policy"]["version"]);
    assert!(fourth["policy"]["last_error"].is_null());
}

#[tokio::test]
async fn the_file_is_read_again_on_request_and_a_missing_one_leaves_what_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    let running = gateway(&file).await;
    running.known.policy.ask();
    reloads(&running, "ok", 1).await;
    std::fs::remove_file(&file).unwrap();
    running.known.policy.ask();
    reloads(&running, "kept_old", 1).await;
    let state = state(&running).await;
    let why = state["policy"]["last_error"].as_str().unwrap();
    assert!(why.contains("policy.toml: cannot be read"), "{why}");
}

#[tokio::test]
async fn the_built_in_policy_is_never_reloaded() {
    let running = start(&[Scripted::well("a")], |_| {}).await;
    running.known.policy.ask();
    // The page is answered after the task has had its turn.
    for _ in 0..3 {
        let state = state(&running).await;
        assert_eq!(state["policy"]["file"], "built in");
    }
    assert!(
        !running
            .page("/metrics")
            .await
            .1
            .contains("gateway_policy_reloads_total{")
    );
}

#[tokio::test]
async fn a_request_keeps_the_policy_that_it_began_with() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    let running = gateway(&file).await;
    let kept = running.known.policy.current();
    std::fs::write(&file, SECOND).unwrap();
    assert!(running.known.policy.reload().is_ok());
    assert_eq!(kept.policy().session.pins_max, 1_000_000);
    let current = running.known.policy.current();
    assert_eq!(current.policy().session.pins_max, 5);
}

#[tokio::test(start_paused = true)]
async fn a_new_policy_tells_how_many_pins_it_forgets() {
    // Pins of 0, 10, 20, 30 and 40 seconds of age.
    let check = |session: &str, forgotten: usize| {
        let text = format!("version = 1\n[session]\n{session}\n");
        let policy = routing_policies::compile("p.toml", &text).unwrap();
        async move {
            let fleet = crate::fleet::Fleet::new(vec![Scripted::well("a")]);
            for n in 0..5 {
                if n > 0 {
                    tokio::time::sleep(Duration::from_secs(10)).await;
                }
                fleet
                    .ask(&[("x-session-id", &format!("s{n}"))], &chat(&["x"]))
                    .await;
            }
            assert_eq!(fleet.known.fit(&policy), forgotten);
            let state: serde_json::Value =
                serde_json::from_slice(&fleet.known.describe(false)).unwrap();
            assert_eq!(state["policy"]["pins_forgotten"], forgotten);
        }
    };
    check("agents = false", 0).await;
    check("pin_ttl_seconds = 25", 2).await;
    check("pins_max = 2", 3).await;
    check("pin_ttl_seconds = 25\npins_max = 2", 3).await;
    check("pin_ttl_seconds = 90000", 0).await;
}

#[test]
fn a_hangup_has_the_file_read_again_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("policy.toml"), FIRST).unwrap();
    let config = folder.path().join("gateway.toml");
    let text = "listen = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\npolicy = \"policy.toml\"\n[[replicas]]\nname = \"a\"\nurl = \"http://127.0.0.1:1\"\n";
    std::fs::write(&config, text).unwrap();
    let mut gateway = Command::new(env!("CARGO_BIN_EXE_gateway"))
        .args(["serve", "--config"])
        .arg(&config)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&gateway);
    let mut lines = BufReader::new(gateway.stderr.take().unwrap()).lines();
    let mut said = |words: &str| lines.any(|line| line.unwrap().contains(words));
    assert!(said("serving"));
    // The file has not changed, so it is the signal that has it read.
    for _ in 0..2 {
        kill_process(pid, Signal::HUP).unwrap();
        assert!(said("new policy in use"));
    }
    kill_process(pid, Signal::TERM).unwrap();
    assert!(said("draining"));
    assert!(gateway.wait().unwrap().success());
}
