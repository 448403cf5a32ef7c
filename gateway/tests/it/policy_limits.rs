//! What the policy's `[limits]` refuse.

use http::Response;

use crate::fleet::{Answer, Fleet, chat, read};
use crate::replica::{STOP, Scripted, Step, event, json, stream_head};

/// A fleet under this policy, and the folder that its file lies in.
fn fleet(replica: Scripted, policy: &str) -> (Fleet, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, format!("version = 1\n{policy}")).unwrap();
    let fleet = Fleet::with(vec![replica], |config| config.policy = Some(file));
    (fleet, folder)
}

/// A replica whose streams never end.
fn endless() -> Scripted {
    Scripted::new("a", |_| vec![stream_head(), event(STOP), Step::Hang])
}

fn says(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.code().as_str()), (status, code));
    assert_eq!((answer.replica(), answer.reason()), ("none", code));
}

const S: &[(&str, &str)] = &[("x-session-id", "s")];
const T: &[(&str, &str)] = &[("x-session-id", "t")];

#[tokio::test(start_paused = true)]
async fn so_many_requests_of_one_session_are_taken_and_each_ending_makes_room() {
    let (fleet, _folder) = fleet(endless(), "[limits]\nin_flight_per_session = 2\n");
    let body = chat(&["x"]);
    let first = fleet.open(S, &body).await;
    let second = fleet.open(S, &body).await;
    let refused = fleet.ask(S, &body).await;
    says(&refused, 429, "session_busy");
    assert_eq!(refused.header("retry-after"), "1");
    assert!(refused.body.contains("`limits.in_flight_per_session` = 2"));
    assert!(refused.body.contains(r#""type":"rate_limit_error""#));
    // Others are not in its way, nor is who has no name.
    let mut others = vec![fleet.open(T, &body).await];
    for _ in 0..3 {
        others.push(fleet.open(&[], &body).await);
    }
    assert!(others.iter().all(|answer| answer.status() == 200));
    drop(first);
    let third = fleet.open(S, &body).await;
    assert_eq!(third.status(), 200);
    assert_eq!(fleet.open(S, &body).await.status(), 429);
    drop((second, third, others));
    assert!(fleet.known.seats.is_empty());
    assert_eq!(fleet.open_requests(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_session_gets_its_seat_back_however_its_request_ends() {
    let script = |n: usize| match n {
        0 => json(400, "{}"),
        // A kept connection that closes is tried again on a new one.
        1 | 2 => vec![Step::Drop],
        3 => vec![stream_head(), Step::Drop],
        _ => json(200, "{}"),
    };
    let policy = "[limits]\nin_flight_per_session = 1\n";
    let (fleet, _folder) = fleet(Scripted::new("a", script), policy);
    let body = chat(&["x"]);
    for status in [400, 502, 200, 200] {
        assert_eq!(fleet.ask(S, &body).await.status, status);
        assert!(fleet.known.seats.is_empty(), "after {status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_over_the_limit_is_told_both_numbers_and_reaches_no_replica() {
    let (fleet, _folder) = fleet(Scripted::well("a"), "[limits]\nprompt_bytes_max = 100\n");
    let of = |bytes: usize| {
        let frame = r#"{"role":"user","content":""}"#.len();
        chat(&["x".repeat(bytes - frame).as_str()])
    };
    assert_eq!(fleet.ask(&[], &of(100)).await.status, 200);
    let answer = fleet.ask(&[], &of(101)).await;
    says(&answer, 413, "prompt_too_long");
    assert!(answer.body.contains("are 101 bytes, more than the 100"));
    assert!(answer.body.contains(r#""param":"messages""#));
    // What is no prompt does not count.
    let padded = of(100).replace(
        "\"model\"",
        &format!("\"metadata\":\"{}\",\"model\"", "y".repeat(500)),
    );
    assert_eq!(fleet.ask(&[], &padded).await.status, 200);
    assert_eq!(fleet.replicas[0].count(), 2);
}

#[tokio::test(start_paused = true)]
async fn limits_change_with_the_policy_and_requests_on_their_way_stay() {
    let (fleet, folder) = fleet(endless(), "");
    let body = chat(&["x"]);
    let open: Vec<Response<_>> = vec![fleet.open(S, &body).await, fleet.open(S, &body).await];
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, "version = 1\n[limits]\nin_flight_per_session = 1\n").unwrap();
    fleet.known.policy.reload().unwrap();
    // Who came before the limit is not counted.
    let counted = fleet.open(S, &body).await;
    assert_eq!(counted.status(), 200);
    says(&fleet.ask(S, &body).await, 429, "session_busy");
    std::fs::write(&file, "version = 1\n").unwrap();
    fleet.known.policy.reload().unwrap();
    assert_eq!(fleet.open(S, &body).await.status(), 200);
    drop(open);
    let _ = read(counted).await;
    assert!(fleet.known.seats.is_empty());
}
