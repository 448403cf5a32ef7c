//! Whatever replicas and clients do: every request is counted once, nothing stays in flight, no answer is begun
//! twice, and what the client reads is a beginning of what one replica sent.

use std::time::Duration;

use http_body_util::BodyExt as _;
use proptest::prelude::*;

use crate::fleet::{Fleet, chat};
use crate::replica::{STOP, Scripted, Step, chunk, end, event, json, stream_head, wait};

const A: &str = r#"{"choices":[{"index":0,"delta":{"content":"A"}}]}"#;
const OUTCOMES: [&str; 6] = [
    "ok",
    "client_error",
    "rejected",
    "client_closed",
    "upstream_error",
    "timeout",
];

/// What a replica does after the head of a stream, or instead of one.
#[derive(Clone, Copy, Debug)]
enum Act {
    Event,
    Stop,
    Done,
    Error,
    HalfEvent,
    Wait,
    End,
    Drop,
    Hang,
}

#[derive(Clone, Debug)]
enum Answer {
    Refuse,
    Bad,
    DropFirst,
    HangFirst,
    Stream(Vec<Act>),
}

fn steps(answer: &Answer) -> Vec<Step> {
    let acts = match answer {
        Answer::Refuse => return json(503, "{}"),
        Answer::Bad => return json(400, "{}"),
        Answer::DropFirst => return vec![Step::Drop],
        Answer::HangFirst => return vec![Step::Hang],
        Answer::Stream(acts) => acts,
    };
    let act = |act: &Act| match act {
        Act::Event => event(A),
        Act::Stop => event(STOP),
        Act::Done => event("[DONE]"),
        Act::Error => event(r#"{"error":{"message":"no"}}"#),
        Act::HalfEvent => chunk("data: {"),
        Act::Wait => wait(1),
        Act::End => end(),
        Act::Drop => Step::Drop,
        Act::Hang => Step::Hang,
    };
    // A script that has run out leaves the connection open and silent.
    let mut steps = vec![stream_head()];
    steps.extend(acts.iter().map(act));
    steps.push(Step::Hang);
    steps
}

fn answer() -> impl Strategy<Value = Answer> {
    let act = prop_oneof![
        4 => Just(Act::Event),
        2 => Just(Act::Stop),
        2 => Just(Act::Done),
        1 => Just(Act::Error),
        1 => Just(Act::HalfEvent),
        2 => Just(Act::Wait),
        2 => Just(Act::End),
        1 => Just(Act::Drop),
        1 => Just(Act::Hang),
    ];
    prop_oneof![
        1 => Just(Answer::Refuse),
        1 => Just(Answer::Bad),
        1 => Just(Answer::DropFirst),
        1 => Just(Answer::HangFirst),
        6 => proptest::collection::vec(act, 0..6).prop_map(Answer::Stream),
    ]
}

/// A client that reads so many pieces and leaves; or leaves before the head.
async fn client(fleet: &Fleet, reads: Option<usize>) -> Option<String> {
    let body = chat(&["x"]);
    let asking = fleet.open(&[("x-session-id", "s")], &body);
    let Some(reads) = reads else {
        let _ = tokio::time::timeout(Duration::from_millis(1), asking).await;
        return None;
    };
    let mut response = asking.await;
    let mut text = String::new();
    for _ in 0..reads {
        let Some(Ok(frame)) = response.body_mut().frame().await else {
            break;
        };
        text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
    }
    let is_stream = response.headers().get("x-accel-buffering").is_some();
    is_stream.then_some(text)
}

async fn check(answers: Vec<Answer>, reads: Vec<Option<usize>>) {
    let script = answers.clone();
    let replica = |name| {
        let script = script.clone();
        Scripted::new(name, move |n| steps(&script[n % script.len()]))
    };
    let fleet = Fleet::new(vec![replica("a"), replica("b")]);
    for reads in &reads {
        let Some(text) = client(&fleet, *reads).await else {
            continue;
        };
        if text.contains("{data: ") {
            // A half event has swallowed the start of the next one: that is what the replica sent.
            continue;
        }
        let words: String = text
            .split_inclusive("\n\n")
            .filter(|e| *e != ": ping\n\n")
            .collect();
        let error = words.find("data: {\"error\"").unwrap_or(words.len());
        let (sent, after) = words.split_at(error);
        assert!(
            after.matches("\n\n").count() <= 1,
            "nothing follows an error: {text}"
        );
        let is_beginning = answers.iter().any(|answer| {
            let Answer::Stream(acts) = answer else {
                return false;
            };
            let all: String = acts
                .iter()
                .filter_map(|act| match act {
                    Act::Event => Some(format!("data: {A}\n\n")),
                    Act::Stop => Some(format!("data: {STOP}\n\n")),
                    Act::Done => Some("data: [DONE]\n\n".to_owned()),
                    _ => None,
                })
                .collect();
            all.starts_with(sent)
        });
        assert!(is_beginning, "{text} of {answers:?}");
    }
    assert_eq!(fleet.open_requests(), 0.0);
    let replicas = ["a", "b", "none"];
    let counted = replicas
        .iter()
        .flat_map(|r| OUTCOMES.iter().map(|o| fleet.outcome(r, o)));
    assert_eq!(counted.sum::<f64>(), reads.len() as f64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_request_is_counted_once_and_leaves_nothing(
        answers in proptest::collection::vec(answer(), 1..5),
        reads in proptest::collection::vec(proptest::option::weighted(0.8, 0_usize..40), 1..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(check(answers, reads));
    }
}
