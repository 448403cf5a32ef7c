//! Clients that read slowly, or not at all, hold up nobody else.

use super::scripted::{Script, ask, config, expected_tokens, job, read, start};
use crate::engine::config::EngineConfig;
use crate::engine::stream::STREAM_DELTAS_MAX;

/// `running` places for one client that reads nothing and one that reads.
#[track_caller]
fn check(max_running: usize, kv_blocks: usize) {
    let engine = start(
        Script::Hash,
        kv_blocks,
        EngineConfig {
            max_running,
            ..config()
        },
    );
    let unread_job = job("ab", 4 * STREAM_DELTAS_MAX as u32);
    let unread = engine.submit(unread_job.clone()).unwrap();
    for prompt in ["cd", "ef", "gh"] {
        let read_job = job(prompt, 4 * STREAM_DELTAS_MAX as u32);
        assert_eq!(
            ask(&engine, read_job.clone()).tokens,
            expected_tokens(Script::Hash, &read_job)
        );
    }
    assert_eq!(engine.stats().paused, 1);
    // Nothing is lost, and what comes after the pause is what would have come without it.
    assert_eq!(
        read(unread).tokens,
        expected_tokens(Script::Hash, &unread_job)
    );
    assert_eq!(engine.stats().kv_blocks_used, 0);
}

#[test]
fn a_stream_that_nobody_reads_pauses_and_goes_on_later() {
    check(4, 64);
}

#[test]
fn it_gives_up_the_only_place() {
    check(1, 64);
}

#[test]
fn it_gives_up_its_blocks() {
    check(4, 9);
}

#[test]
fn leaving_while_paused_frees_everything() {
    let engine = start(Script::Hash, 16, config());
    let unread = engine.submit(job("ab", 100)).unwrap();
    assert!(ask(&engine, job("cd", 100)).finished.is_some());
    drop(unread);
    assert!(ask(&engine, job("ef", 1)).finished.is_some());
    let stats = engine.stats();
    assert_eq!(
        (
            stats.cancelled,
            stats.running,
            stats.paused,
            stats.kv_blocks_used
        ),
        (1, 0, 0, 0)
    );
    assert!(stats.generated_tokens <= 101 + STREAM_DELTAS_MAX as u64);
}
