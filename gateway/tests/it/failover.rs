//! Another replica is tried before the first byte of an answer, and never after it.

use std::time::Duration;

use crate::fleet::{Fleet, chat};
use crate::replica::{Reach, STOP, Scripted, Step, end, event, json, stream, stream_head, wait};

const WORD: &str = r#"{"choices":[{"index":0,"delta":{"content":"The harbour "}}]}"#;

/// Two replicas of which the first choice of session `s` does `script`; the other is well. Returns its name too.
async fn first_choice(
    script: impl Fn() -> Vec<Step> + Clone + Send + Sync + 'static,
) -> (Fleet, &'static str) {
    let probe = Fleet::new(vec![Scripted::well("a"), Scripted::well("b")]);
    let first = if ask(&probe).await.replica() == "a" {
        "a"
    } else {
        "b"
    };
    let scripted = |name: &'static str| {
        let script = script.clone();
        if name == first {
            Scripted::new(name, move |_| script())
        } else {
            Scripted::well(name)
        }
    };
    (Fleet::new(vec![scripted("a"), scripted("b")]), first)
}

async fn ask(fleet: &Fleet) -> crate::fleet::Answer {
    fleet.ask(&[("x-session-id", "s")], &chat(&["x"])).await
}

fn of<'f>(fleet: &'f Fleet, name: &str) -> &'f Scripted {
    fleet
        .replicas
        .iter()
        .find(|replica| replica.name == name)
        .unwrap()
}

#[track_caller]
fn check_moved(fleet: &Fleet, first: &str, answer: &crate::fleet::Answer, result: &str) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_ne!(answer.replica(), first);
    let attempts = format!("gateway_attempts_total{{replica=\"{first}\",result=\"{result}\"}}");
    assert_eq!(fleet.metric(&attempts), 1.0);
    assert_eq!(
        fleet.metric(&format!("gateway_failovers_total{{replica=\"{first}\"}}")),
        1.0
    );
    assert_eq!(fleet.open_requests(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_has_no_room_is_passed_over() {
    for status in [502, 503] {
        let (fleet, first) = first_choice(move || json(status, "{}")).await;
        let answer = ask(&fleet).await;
        check_moved(&fleet, first, &answer, "refused");
        // It is busy, not gone.
        assert!(
            fleet
                .known
                .fleet
                .replicas()
                .iter()
                .all(|replica| replica.is_ready())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_closes_before_its_first_byte_is_passed_over() {
    for steps in [
        vec![Step::Drop],
        vec![Step::Send("HTTP/1.1 200".into()), Step::Drop],
    ] {
        let (fleet, first) = first_choice(move || steps.clone()).await;
        let answer = ask(&fleet).await;
        check_moved(&fleet, first, &answer, "reset");
        assert_eq!(of(&fleet, first).count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_cannot_be_reached_is_passed_over_and_taken_out() {
    for reach in [Reach::Refused, Reach::Silent] {
        let (fleet, first) = first_choice(Vec::new).await;
        of(&fleet, first).reach(reach);
        let answer = ask(&fleet).await;
        check_moved(&fleet, first, &answer, "unreachable");
        let ready = format!("gateway_replica_ready{{replica=\"{first}\"}}");
        assert_eq!(fleet.metric(&ready), 0.0);
        // The session's next turn knows.
        assert_eq!(ask(&fleet).await.reason(), "pin_held");
    }
}

#[tokio::test(start_paused = true)]
async fn when_everyone_fails_the_last_failure_is_told() {
    let refused = Scripted::well("a");
    refused.reach(Reach::Refused);
    let fleet = Fleet::new(vec![refused, Scripted::new("b", |_| vec![Step::Drop])]);
    let answer = ask(&fleet).await;
    assert_eq!(answer.status, 502);
    assert!(["replica_reset", "replica_unreachable"].contains(&answer.code().as_str()));
    assert_eq!(fleet.open_requests(), 0.0);
    let gone = Fleet::new(vec![fleet.replicas[0].clone()]);
    assert_eq!(ask(&gone).await.code(), "replica_unreachable");
    let none = ask(&gone).await;
    assert_eq!(
        (none.code().as_str(), none.header("retry-after")),
        ("no_replica_ready", "2")
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_candidates_refusal_is_passed_on_as_it_is() {
    let busy = Scripted::new("a", |_| {
        vec![Step::Send(
            "HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\nbusy".into(),
        )]
    });
    let fleet = Fleet::new(vec![busy]);
    let answer = ask(&fleet).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "7"));
    assert_eq!(answer.body, "busy");
    assert_eq!(fleet.outcome("a", "upstream_error"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn after_the_first_byte_there_is_no_other_try() {
    // RC-112
    let (fleet, first) = first_choice(|| vec![stream_head(), event(WORD), Step::Drop]).await;
    let answer = ask(&fleet).await;
    assert_eq!((answer.status, answer.replica()), (200, first));
    let mut events = answer.body.split_terminator("\n\n");
    assert_eq!(events.next().unwrap(), format!("data: {WORD}"));
    assert!(
        events
            .next()
            .unwrap()
            .starts_with(r#"data: {"error":{"message":"#)
    );
    assert_eq!(events.next(), None);
    assert!(!answer.body.contains("[DONE]") && !answer.body.contains("finish_reason"));
    let others: usize = fleet
        .replicas
        .iter()
        .filter(|replica| replica.name != first)
        .map(Scripted::count)
        .sum();
    assert_eq!(others, 0);
    assert_eq!(fleet.outcome(first, "upstream_error"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_first_byte_that_does_not_come_is_a_timeout_and_not_tried_again() {
    let (fleet, first) = first_choice(|| vec![Step::Hang]).await;
    let answer = ask(&fleet).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (504, "first_byte_timeout")
    );
    assert_eq!(answer.replica(), first);
    assert_eq!(fleet.outcome(first, "timeout"), 1.0);
    tokio::task::yield_now().await;
    assert_eq!(of(&fleet, first).log.lock().unwrap().cancelled, 1);
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_that_closes_under_a_request_is_replaced_once() {
    // RC-126: the second request goes out on the kept connection, which is closed without a byte.
    let stale = Scripted::new("a", |n| match n {
        1 => vec![Step::Drop],
        _ => stream(&[STOP, "[DONE]"]),
    });
    let fleet = Fleet::new(vec![stale]);
    assert_eq!(ask(&fleet).await.status, 200);
    assert_eq!(ask(&fleet).await.status, 200);
    let log = fleet.replicas[0].log.lock().unwrap();
    assert_eq!((log.requests.len(), log.connections), (3, 2));
    drop(log);
    let attempts = |result| format!("gateway_attempts_total{{replica=\"a\",result=\"{result}\"}}");
    assert_eq!(fleet.metric(&attempts("stale_connection")), 1.0);
    assert_eq!(fleet.metric(&attempts("answered")), 2.0);
}

#[tokio::test(start_paused = true)]
async fn connections_are_kept_for_a_while_and_a_closed_one_is_noticed() {
    let closing = Scripted::new("a", |n| {
        let mut steps = stream(&[STOP, "[DONE]"]);
        if n == 1 {
            steps.extend([wait(10), Step::Drop]);
        }
        steps
    });
    let fleet = Fleet::new(vec![closing]);
    let connections = || fleet.replicas[0].log.lock().unwrap().connections;
    for (pause_ms, expected) in [(0, 1), (1000, 1), (1000, 2), (3900, 2), (4100, 3)] {
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        assert_eq!(ask(&fleet).await.status, 200);
        assert_eq!(connections(), expected, "after {pause_ms} ms");
    }
    let stale = "gateway_attempts_total{replica=\"a\",result=\"stale_connection\"}";
    assert_eq!(fleet.metric(stale), 0.0);
}

#[tokio::test(start_paused = true)]
async fn an_end_without_a_last_chunk_is_no_end() {
    let cut = Scripted::new("a", |_| vec![stream_head(), event(WORD), end(), Step::Drop]);
    let fleet = Fleet::new(vec![cut]);
    // RC-115
    let answer = ask(&fleet).await;
    assert!(answer.body.contains("answer_truncated") && !answer.body.contains("[DONE]"));
    assert_eq!(
        fleet.metric("gateway_stream_truncated_total{replica=\"a\"}"),
        1.0
    );
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_fails_its_requests_draws_no_traffic() {
    // RC-074: it is ready by its probes, and empty, so by load alone it would be everybody's first choice.
    let kinds: [fn() -> Vec<Step>; 4] = [
        || json(500, "{}"),
        || json(503, "{}"),
        || vec![Step::Drop],
        || vec![Step::Hang],
    ];
    for failing in kinds {
        let failing = Scripted::new("failing", move |_| failing());
        let fleet = Fleet::new(vec![Scripted::well("well"), failing]);
        for n in 0..50 {
            fleet.ask(&[], &chat(&[&format!("new {n}")])).await;
        }
        let [well, failing] = [0, 1].map(|index| fleet.replicas[index].count());
        assert!(failing <= 2 && well >= 48, "{failing} and {well}");
        let open = |name| {
            fleet.metric(&format!(
                "gateway_replica_breaker_open{{replica=\"{name}\"}}"
            ))
        };
        assert_eq!((open("well"), open("failing")), (0.0, 1.0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_has_recovered_is_found_again_and_one_alone_is_always_asked() {
    let fleet = Fleet::new(vec![Scripted::new("a", |n| match n {
        0..5 => json(500, "{}"),
        _ => stream(&[STOP, "[DONE]"]),
    })]);
    let open = || fleet.metric("gateway_replica_breaker_open{replica=\"a\"}");
    for (status, opened) in [
        (500, 0.0),
        (500, 1.0),
        (500, 1.0),
        (500, 1.0),
        (500, 1.0),
        (200, 0.0),
    ] {
        assert_eq!(ask(&fleet).await.status, status);
        assert_eq!(open(), opened);
    }
    let state = fleet.known.describe(false);
    assert!(
        String::from_utf8(state)
            .unwrap()
            .contains(r#""breaker_open": false"#)
    );
}
