//! A15 on the real model: cache, batch, chunking, threads and preemption change neither tokens nor log probabilities.

use futures::join_all;
use serde_json::{Value, json};
use system_tests::{assets, fleet::lone_replica, http};

use crate::support::{ask, guide, message};

/// Flags that change how an answer is computed and must not change the answer.
const VARIANTS: &[&[&str]] = &[
    &[],
    &["--no-prefix-cache", "--threads", "1", "--step-tokens", "37"],
    &["--max-running", "1"],
    &["--step-tokens", "16", "--kv-tokens", "2560"],
];

fn requests() -> Vec<Value> {
    let shared = guide("Norvik");
    (0..6)
        .map(|i| {
            let messages = json!([
                message("system", &shared[..700 + 150 * (i % 3)]),
                message("user", &format!("What opens at {i}?"))
            ]);
            let mut request = ask(&messages, 12);
            request["logprobs"] = json!(true);
            request["top_logprobs"] = json!(5);
            if i % 2 == 1 {
                request["temperature"] = json!(0.8);
                request["seed"] = json!(7 + i);
            }
            request
        })
        .collect()
}

/// The answer without what may differ: ids, times, cached tokens.
fn essence(reply: &http::Reply) -> Value {
    let answer = reply.json();
    assert_eq!(reply.status, 200, "{answer}");
    json!([
        answer["choices"],
        answer["usage"]["prompt_tokens"],
        answer["usage"]["completion_tokens"]
    ])
}

#[tokio::test]
async fn nothing_about_the_computation_shows_in_the_answers() {
    let requests = requests();
    let mut expected: Option<Vec<Value>> = None;
    for flags in VARIANTS {
        let (process, addr) = lone_replica(&assets::smollm2(), flags).await;
        // Twice: the second round finds its prompts in the cache, where there is one.
        for round in 0..2 {
            let answers = join_all(requests.iter().map(|r| http::chat(addr, &[], r))).await;
            let answers: Vec<Value> = answers
                .iter()
                .map(|a| essence(a.as_ref().expect("an answer")))
                .collect();
            match &expected {
                None => expected = Some(answers),
                Some(expected) => {
                    for (i, (got, want)) in answers.iter().zip(expected).enumerate() {
                        assert_eq!(got, want, "request {i}, flags {flags:?}, round {round}");
                    }
                }
            }
        }
        drop(process);
    }
}

/// A few lines in place of a dependency: all futures at once, results in order.
mod futures {
    use std::{future::poll_fn, pin::Pin, task::Poll};

    pub(super) async fn join_all<T>(work: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
        let mut work: Vec<_> = work.map(|w| (Some(Box::pin(w)), None)).collect();
        poll_fn(|cx| {
            for (future, result) in &mut work {
                if let Some(Poll::Ready(value)) = future.as_mut().map(|f| Pin::new(f).poll(cx)) {
                    (*future, *result) = (None, Some(value));
                }
            }
            if work.iter().any(|(future, _)| future.is_some()) {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
        work.into_iter().filter_map(|(_, result)| result).collect()
    }
}
