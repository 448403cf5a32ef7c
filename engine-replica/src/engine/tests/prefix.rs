//! What clients are told of the prefix cache.

use super::scripted::{Script, ask, config, expected_tokens, job, start};
use crate::engine::config::EngineConfig;
use crate::engine::job::Job;

fn salted(prompt: &str, salt: Option<&str>) -> Job {
    Job {
        cache_salt: salt.map(str::to_owned),
        ..job(prompt, 3)
    }
}

/// Asks one after the other and compares what each was told about the cache, and its tokens with a model alone.
#[track_caller]
fn check(config: EngineConfig, jobs: &[(Job, u32)]) {
    let engine = start(Script::Hash, 16, config);
    for (job, cached) in jobs {
        let told = ask(&engine, job.clone());
        assert_eq!(told.cached, Some(*cached));
        assert_eq!(told.tokens, expected_tokens(Script::Hash, job));
    }
    let stats = engine.stats();
    assert_eq!(
        stats.cached_tokens,
        jobs.iter()
            .map(|(_, cached)| u64::from(*cached))
            .sum::<u64>()
    );
    assert_eq!(
        stats.prompt_tokens,
        jobs.iter()
            .map(|(job, _)| job.prompt.len() as u64)
            .sum::<u64>()
    );
}

#[test]
fn a_prefix_seen_before_is_cached_in_full_blocks() {
    let text = "abcdefghij".repeat(5);
    let rows = [
        (&text[..40], 0),
        (&text[..40], 32),
        (&text[..48], 32),
        (&text[..50], 48),
    ];
    check(
        config(),
        &rows.map(|(prompt, cached)| (salted(prompt, None), cached)),
    );
}

#[test]
fn without_the_cache_everything_is_a_miss() {
    let off = EngineConfig {
        prefix_cache: false,
        ..config()
    };
    let prompt = "abcdefgh".repeat(5);
    check(
        off,
        &[(salted(&prompt, None), 0), (salted(&prompt, None), 0)],
    );
}

/// SGLang #37160: the salt must reach every place where blocks are found.
#[test]
fn tenants_do_not_share_and_each_keeps_its_own() {
    let prompt = "abcdefgh".repeat(5);
    let rows = [
        (Some("a"), 0),
        (Some("b"), 0),
        (None, 0),
        (Some("a"), 32),
        (Some("b"), 32),
    ];
    check(
        config(),
        &rows.map(|(salt, cached)| (salted(&prompt, salt), cached)),
    );
}

#[test]
fn the_next_turn_reuses_the_answer_too() {
    let engine = start(Script::Alphabet, 16, config());
    let told = ask(&engine, job("abcdefgh", 24));
    let turn = format!("abcdefgh{}{}", told.text, "xx");
    // Eight of the prompt and 23 of the answer were computed; its last token never is.
    assert_eq!(ask(&engine, job(&turn, 1)).cached, Some(16));
    let told = ask(&engine, job("abcdefgh", 25));
    let turn = format!("abcdefgh{}{}", told.text, "xx");
    assert_eq!(ask(&engine, job(&turn, 1)).cached, Some(32));
}

#[test]
fn after_a_reset_everything_is_a_miss() {
    let engine = start(Script::Hash, 16, config());
    let prompt = "abcdefgh".repeat(5);
    assert_eq!(ask(&engine, job(&prompt, 1)).cached, Some(0));
    engine.reset_prefix_cache();
    assert_eq!(ask(&engine, job(&prompt, 1)).cached, Some(0));
    assert_eq!(ask(&engine, job(&prompt, 1)).cached, Some(32));
}
