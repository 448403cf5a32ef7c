//! What is refused, with which words.

use super::scripted::{Script, ask, config, job, read, start, start_gated, try_start};
use crate::engine::config::EngineConfig;
use crate::engine::handle::SubmitError;
use crate::engine::job::{Job, JobEvent};

/// Submits to an engine of 4 blocks (64 tokens) and a context of 100.
#[track_caller]
fn check(job: Job, expect: Option<SubmitError>, message: &str) {
    let engine = start(
        Script::Hash,
        4,
        EngineConfig {
            context_max: 100,
            ..config()
        },
    );
    let error = engine.submit(job).err();
    assert_eq!(
        error.as_ref().map(ToString::to_string).unwrap_or_default(),
        message
    );
    assert_eq!(error, expect);
    assert_eq!(engine.stats().waiting, 0);
}

#[test]
fn what_could_never_run_is_refused_with_the_numbers() {
    let letters = |n| "a".repeat(n);
    check(
        job("", 1),
        Some(SubmitError::Empty {
            prompt: 0,
            max_tokens: 1,
        }),
        "the prompt has 0 tokens and `max_tokens` is 1; both must be at least 1",
    );
    check(
        job("a", 0),
        Some(SubmitError::Empty {
            prompt: 1,
            max_tokens: 0,
        }),
        "the prompt has 1 tokens and `max_tokens` is 0; both must be at least 1",
    );
    check(
        job(&letters(100), 1),
        Some(SubmitError::TooLong {
            prompt: 100,
            context: 100,
        }),
        "the prompt has 100 tokens and the context is 100; shorten it to at most 99 tokens",
    );
    check(
        Job {
            prompt: vec![1, 26],
            ..job("a", 1)
        },
        Some(SubmitError::UnknownToken {
            token: 26,
            vocab: 26,
        }),
        "token 26 is not in the model's vocabulary of 26 tokens",
    );
    check(
        job(&letters(40), 26),
        Some(SubmitError::NeverFits {
            tokens: 65,
            blocks_needed: 5,
            blocks_total: 4,
        }),
        "prompt and `max_tokens` need 65 tokens of KV, which is 5 blocks of 16, and this replica has 4; \
         lower `max_tokens` or shorten the prompt",
    );
}

#[test]
fn a_job_that_needs_the_very_last_block_runs() {
    let engine = start(
        Script::Hash,
        4,
        EngineConfig {
            context_max: 100,
            ..config()
        },
    );
    assert_eq!(ask(&engine, job(&"a".repeat(40), 25)).tokens.len(), 25);
    // The context ends first here, and the last token needs no KV.
    let engine = start(
        Script::Hash,
        4,
        EngineConfig {
            context_max: 65,
            ..config()
        },
    );
    assert_eq!(ask(&engine, job(&"a".repeat(40), 1000)).tokens.len(), 25);
}

#[test]
fn a_full_queue_refuses_and_has_room_again() {
    let limits = EngineConfig {
        max_running: 1,
        queue_max: 2,
        ..config()
    };
    let (engine, steps) = start_gated(Script::Hash, 16, limits);
    let mut first = engine.submit(job("a", 5)).unwrap();
    // Once it is admitted it waits no more.
    assert!(matches!(
        first.blocking_recv(),
        Some(JobEvent::Admitted { .. })
    ));
    let waiting = [
        engine.submit(job("b", 1)).unwrap(),
        engine.submit(job("c", 1)).unwrap(),
    ];
    let refused = engine.submit(job("d", 1)).err();
    assert_eq!(refused, Some(SubmitError::QueueFull { depth: 2 }));
    assert_eq!(engine.stats().waiting, 2);
    drop(steps);
    for stream in waiting {
        assert!(read(stream).finished.is_some());
    }
    assert!(ask(&engine, job("d", 1)).finished.is_some());
}

#[test]
fn a_wrong_configuration_is_refused_with_all_that_is_wrong() {
    let wrong = EngineConfig {
        max_running: 0,
        step_tokens: 0,
        context_max: 1,
        ..config()
    };
    let error = try_start(Script::Hash, 0, wrong).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the engine cannot start: `max_running` is 0, expected at least 1; `step_tokens` is 0, expected at least 1; \
         `context_max` is 1, expected at least 2; `the model's KV blocks` is 0, expected at least 1"
    );
}
