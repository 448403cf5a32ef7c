//! Clients that read slowly, or not at all, hold up nobody else.

use proptest::prelude::*;

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

/// What a client does.
#[derive(Clone, Copy, Debug)]
enum Client {
    /// Reads as fast as it can.
    Reads,
    /// Reads once all the others have theirs.
    ReadsLast,
    /// Reads so many events and goes away.
    LeavesAfter(usize),
}

fn clients() -> impl Strategy<Value = Vec<(Client, u32)>> {
    let client = prop_oneof![
        Just(Client::Reads),
        Just(Client::ReadsLast),
        (0..40usize).prop_map(Client::LeavesAfter),
    ];
    prop::collection::vec((client, 1..80u32), 1..9)
}

proptest! {
    #[test]
    fn whoever_stalls_or_leaves_the_others_get_their_tokens(
        clients in clients(), max_running in 1..5usize, spare_blocks in 0..6usize,
    ) {
        let prompt = |i: usize| ["ab", "abcdefghijklmnopqr", "x"][i % 3];
        let config = EngineConfig { max_running, step_tokens: 8, ..config() };
        let engine = start(Script::Hash, 7 + spare_blocks, config);
        let mut streams = Vec::new();
        for (i, &(client, max_tokens)) in clients.iter().enumerate() {
            let job = job(prompt(i), max_tokens);
            streams.push((client, engine.submit(job.clone()).unwrap(), job));
        }
        let mut last = Vec::new();
        for (client, mut stream, job) in streams {
            match client {
                Client::Reads => {
                    prop_assert_eq!(read(stream).tokens, expected_tokens(Script::Hash, &job));
                }
                Client::ReadsLast => last.push((stream, job)),
                Client::LeavesAfter(events) => {
                    (0..events).for_each(|_| drop(stream.blocking_recv()));
                }
            }
        }
        for (stream, job) in last {
            prop_assert_eq!(read(stream).tokens, expected_tokens(Script::Hash, &job));
        }
        engine.drain();
        engine.join();
        let stats = engine.stats();
        prop_assert_eq!(stats.finished + stats.cancelled, clients.len() as u64);
        prop_assert_eq!((stats.running, stats.waiting, stats.paused, stats.kv_blocks_used), (0, 0, 0, 0));
    }
}
