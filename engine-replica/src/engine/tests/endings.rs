//! How an answer ends, and how the engine does.

use std::sync::Arc;

use replica_core::answer_text::{ThinkTokens, Thinking};
use replica_core::budget::{ThinkBudget, ThinkWords};

use super::scripted::{Script, Step, ask, config, job, read, start, start_gated};
use crate::engine::config::EngineConfig;
use crate::engine::handle::SubmitError;
use crate::engine::job::FinishReason::{Length, Stop};
use crate::engine::job::{FinishReason, Job, JobEvent};

/// The alphabet goes on after `a`; what does the client get?
#[track_caller]
fn check(change: impl FnOnce(&mut Job), text: &str, reason: FinishReason, completion_tokens: u32) {
    let engine = start(
        Script::Alphabet,
        64,
        EngineConfig {
            context_max: 50,
            ..config()
        },
    );
    let mut job = job("a", 6);
    change(&mut job);
    let told = ask(&engine, job);
    assert_eq!(told.text, text);
    assert_eq!(told.finished, Some((reason, completion_tokens)));
    // RC-150: tokens are counted, whatever the deltas held.
    assert_eq!(told.tokens.len(), completion_tokens as usize);
}

#[test]
fn answers_end_at_the_first_reason() {
    check(|_| {}, "bcdefg", Length, 6);
    check(|job| job.max_tokens = 1, "b", Length, 1);
    check(|job| job.stop_tokens = vec![4], "bcd", Stop, 4);
    check(|job| job.stop_tokens = vec![1], "", Stop, 1);
    check(|job| job.stop_strings = vec!["de".into()], "bc", Stop, 4);
    check(
        |job| job.stop_strings = vec!["efx".into()],
        "bcdefg",
        Length,
        6,
    );
    check(|job| job.stop_strings = vec!["g".into()], "bcdef", Stop, 6);
    // A stop token ends the answer before what was held for a stop string is complete.
    check(
        |job| (job.stop_strings, job.stop_tokens) = (vec!["def".into()], vec![5]),
        "bcde",
        Stop,
        5,
    );
    // The context ends at 50 tokens, of which the prompt has one.
    check(
        |job| job.max_tokens = 500,
        &"bcdefghijklmnopqrstuvwxyza".repeat(2)[..49],
        Length,
        49,
    );
}

#[test]
fn reasoning_is_told_apart_and_stop_strings_are_of_the_content() {
    #[track_caller]
    fn thinks(change: impl FnOnce(&mut Job), expect: (&str, &str, u32), reason: FinishReason) {
        let engine = start(Script::Alphabet, 64, config());
        let mut job = job("a", 8);
        // `b` opens and `e` closes.
        job.thinking = Some(Thinking {
            tokens: ThinkTokens { open: 1, close: 4 },
            opened: false,
            prompt_tokens: 0,
        });
        change(&mut job);
        let told = ask(&engine, job);
        let parts = (
            told.reasoning.as_str(),
            told.text.as_str(),
            told.reasoning_tokens,
        );
        assert_eq!(parts, expect);
        assert_eq!(told.finished.map(|(reason, _)| reason), Some(reason));
        assert_eq!(
            told.finished.map(|(_, n)| n as usize),
            Some(told.tokens.len())
        );
    }
    thinks(|_| {}, ("cd", "fghi", 2), Length);
    thinks(|job| job.max_tokens = 4, ("cd", "", 2), Length);
    thinks(|job| job.max_tokens = 2, ("c", "", 1), Length);
    thinks(|job| job.max_tokens = 1, ("", "", 0), Length);
    // A stop token ends the answer wherever it comes.
    thinks(|job| job.stop_tokens = vec![3], ("c", "", 1), Stop);
    thinks(|job| job.stop_tokens = vec![6], ("cd", "f", 2), Stop);
    // A stop string in the reasoning, or over its end, is none.
    thinks(
        |job| job.stop_strings = vec!["d".into(), "h".into(), "df".into()],
        ("cd", "fg", 2),
        Stop,
    );
}

#[test]
fn thinking_is_bounded_above_and_below() {
    #[track_caller]
    fn thinks(most: Option<u32>, least: u32, expect: (&str, &str, u32), counts: [u64; 3]) {
        let engine = start(Script::Alphabet, 64, config());
        let mut job = job("a", 12);
        // `b` opens and `f` closes.
        job.thinking = Some(Thinking {
            tokens: ThinkTokens { open: 1, close: 5 },
            opened: false,
            prompt_tokens: 0,
        });
        let words = ThinkWords {
            closing: vec![25, 5, 6],
            prolong: vec![22, 3],
            tool: None,
        };
        job.budget = Some(ThinkBudget {
            words: Arc::new(words),
            most,
            least,
        });
        let told = ask(&engine, job);
        let parts = (&*told.reasoning, &*told.text, told.reasoning_tokens);
        assert_eq!(parts, expect);
        let got = engine.stats().budgets;
        assert_eq!([got.reached, got.closed, got.prolonged], counts);
    }
    thinks(None, 0, ("cde", "ghijklm", 3), [0, 0, 0]);
    // `z` and `g` are written, and the alphabet goes on from there.
    thinks(Some(2), 0, ("cdz", "ghijklm", 2), [1, 1, 0]);
    thinks(Some(0), 0, ("z", "ghijklmno", 0), [1, 1, 0]);
    // The first `f` gives way to `wd`, after which the alphabet comes to `f` again.
    thinks(None, 5, ("cdewde", "ghij", 6), [0, 0, 1]);
    thinks(None, 99, ("cdewdewde", "g", 9), [0, 0, 2]);
    thinks(Some(4), 99, ("cdewz", "ghijk", 4), [1, 1, 1]);
}

#[test]
fn stop_tokens_cannot_come_before_min_tokens() {
    let with_min = |min| move |job: &mut Job| (job.stop_tokens, job.min_tokens) = (vec![2], min);
    check(with_min(1), "b", Stop, 2);
    // With `c` held back the likeliest is `a`, the lowest of equals; then the alphabet goes on to `c`.
    check(with_min(2), "bab", Stop, 4);
}

/// RC-108: the client has left, so nothing more is computed for it, and its blocks are free.
#[test]
fn rc108_a_client_that_leaves_costs_no_further_step() {
    let (engine, steps) = start_gated(Script::Hash, 16, config());
    let mut left = engine.submit(job("abcdefgh", 100)).unwrap();
    assert!(matches!(
        left.blocking_recv(),
        Some(JobEvent::Admitted { .. })
    ));
    steps.send(Step::Go).unwrap();
    assert!(matches!(left.blocking_recv(), Some(JobEvent::Delta { .. })));
    // The second step may have been planned by now; it is the last one for this client.
    drop(left);
    drop(steps);
    assert!(ask(&engine, job("b", 1)).finished.is_some());
    let stats = engine.stats();
    assert!(stats.steps <= 3, "{stats:?}");
    assert_eq!(
        (stats.cancelled, stats.running, stats.kv_blocks_used),
        (1, 0, 0)
    );
}

/// RC-151: whatever the ending, the gauges come back to zero.
#[test]
fn rc151_a_job_that_leaves_the_queue_early_gives_its_place_back() {
    let limits = EngineConfig {
        max_running: 1,
        queue_max: 1,
        ..config()
    };
    let (engine, steps) = start_gated(Script::Hash, 16, limits);
    let mut first = engine.submit(job("a", 2)).unwrap();
    assert!(matches!(
        first.blocking_recv(),
        Some(JobEvent::Admitted { .. })
    ));
    drop(engine.submit(job("b", 2)).unwrap());
    drop(steps);
    while first.blocking_recv().is_some() {}
    assert!(ask(&engine, job("c", 1)).finished.is_some());
    let stats = engine.stats();
    assert_eq!((stats.cancelled, stats.waiting, stats.finished), (1, 0, 2));
}

#[test]
fn a_failed_step_fails_its_jobs_and_no_others_and_leaves_nothing_to_reuse() {
    let (engine, steps) = start_gated(Script::Alphabet, 16, config());
    let prompt = "abcdefgh".repeat(5);
    let failing = engine.submit(job(&prompt, 3)).unwrap();
    steps.send(Step::Fail).unwrap();
    let told = read(failing);
    let message = "the model could not compute this request: the test says so; try again";
    assert_eq!(
        (told.cached, told.failed.as_deref()),
        (Some(0), Some(message))
    );
    assert!(engine.healthy());
    drop(steps);
    let told = ask(&engine, job(&prompt, 3));
    assert_eq!((told.cached, told.text.as_str()), (Some(0), "ijk"));
    let stats = engine.stats();
    assert_eq!(
        (stats.failed, stats.finished, stats.kv_blocks_used),
        (1, 1, 0)
    );
}

#[test]
fn logits_that_are_no_numbers_fail_their_job_only() {
    let engine = start(Script::Broken, 16, config());
    let told = ask(&engine, job("a", 3));
    assert!(
        told.failed
            .unwrap()
            .starts_with("the model found no next token")
    );
    assert!(engine.healthy());
    assert_eq!(
        (engine.stats().failed, engine.stats().kv_blocks_used),
        (1, 0)
    );
}

#[test]
fn a_panic_in_the_model_fails_every_job_and_is_no_secret() {
    let limits = EngineConfig {
        max_running: 1,
        ..config()
    };
    let (engine, steps) = start_gated(Script::Hash, 16, limits);
    let jobs = [
        engine.submit(job("a", 3)).unwrap(),
        engine.submit(job("b", 3)).unwrap(),
    ];
    steps.send(Step::Panic).unwrap();
    for stream in jobs {
        assert!(read(stream).failed.is_some());
    }
    engine.join();
    assert!(!engine.healthy());
    assert_eq!(engine.submit(job("c", 1)).err(), Some(SubmitError::Stopped));
}

#[tokio::test]
async fn draining_finishes_what_was_accepted_and_takes_nothing_new() {
    let limits = EngineConfig {
        max_running: 1,
        ..config()
    };
    let (engine, steps) = start_gated(Script::Alphabet, 16, limits);
    let accepted = [
        engine.submit(job("a", 3)).unwrap(),
        engine.submit(job("b", 3)).unwrap(),
    ];
    engine.drain();
    assert_eq!(
        engine.submit(job("c", 1)).err(),
        Some(SubmitError::Draining)
    );
    drop(steps);
    for (mut stream, text) in accepted.into_iter().zip(["bcd", "cde"]) {
        let mut got = String::new();
        while let Some(event) = stream.recv().await {
            match event {
                JobEvent::Delta { text, .. } => got += &text,
                JobEvent::Failed { message } => panic!("{message}"),
                _ => {}
            }
        }
        assert_eq!(got, text);
    }
    engine.stopped().await;
    assert!(engine.healthy());
    assert_eq!(
        engine.submit(job("c", 1)).err(),
        Some(SubmitError::Draining)
    );
    engine.join();
}

#[test]
fn an_idle_engine_drains_at_once_and_the_last_handle_ends_it() {
    let engine = start(Script::Hash, 16, config());
    engine.drain();
    engine.join();

    let engine = start(Script::Hash, 16, config());
    let shared = std::sync::Arc::clone(&engine.shared);
    let thread = shared.thread.lock().unwrap().take().unwrap();
    drop(engine);
    thread.join().unwrap();
}
