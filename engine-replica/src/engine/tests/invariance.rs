//! A15: cache on or off, any batch, any chunks, any room: the same tokens, and the same of them are reasoning. Engines have failed here: greedy output that
//! differs between hit and miss (vLLM #5543), answers that mix with earlier prompts (mistral.rs #1026).

use std::sync::Arc;

use proptest::prelude::*;
use replica_core::BLOCK_TOKENS;
use replica_core::answer_text::{ThinkTokens, Thinking};
use replica_core::budget::{ThinkBudget, ThinkWords};
use replica_core::sampler::SamplingParams;

use super::scripted::{Script, config, expected_parts, expected_tokens, greedy, job, read, start};
use crate::engine::config::EngineConfig;
use crate::engine::job::{FinishReason, Job};

/// Prompts of whole blocks of one letter and a short tail, so that prefixes often agree.
fn prompts() -> impl Strategy<Value = String> {
    (
        prop::collection::vec(prop::sample::select(vec!['a', 'b']), 0..3),
        "[ab]{1,18}",
    )
        .prop_map(|(blocks, tail)| {
            let blocks: String = blocks
                .iter()
                .map(|letter| letter.to_string().repeat(BLOCK_TOKENS))
                .collect();
            blocks + &tail
        })
}

fn sampling() -> impl Strategy<Value = SamplingParams> {
    let warm = (any::<u64>(), 0.5f32..1.5, 0..10u32).prop_map(|(seed, temperature, top_k)| {
        let (top_p, repetition_penalty, presence_penalty) = (0.9, 1.2, 0.5);
        SamplingParams {
            seed,
            temperature,
            top_k,
            top_p,
            repetition_penalty,
            presence_penalty,
            ..greedy()
        }
    });
    prop_oneof![Just(greedy()), warm]
}

/// `a` and `b` mark reasoning.
fn thinking() -> impl Strategy<Value = Option<Thinking>> {
    let tokens = ThinkTokens { open: 0, close: 1 };
    let some = any::<bool>().prop_map(move |opened| Thinking {
        tokens,
        opened,
        prompt_tokens: 0,
    });
    prop::option::of(some)
}

/// `x`, the mark and `y` close; `c` calls a tool.
fn budgets() -> impl Strategy<Value = Option<ThinkBudget>> {
    let words = Arc::new(ThinkWords {
        closing: vec![23, 1, 24],
        prolong: vec![22],
        tool: Some(2),
    });
    let some = (0..9u32).prop_map(move |most| ThinkBudget {
        words: Arc::clone(&words),
        most: Some(most),
        least: 0,
    });
    prop::option::of(some)
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let job = (
        prompts(),
        1..40u32,
        sampling(),
        prop::option::of(Just("tenant".to_owned())),
        (thinking(), budgets()),
    )
        .prop_map(|(prompt, max_tokens, sampling, cache_salt, thinking)| {
            let mut job = job(&prompt, max_tokens);
            (job.sampling, job.cache_salt) = (sampling, cache_salt);
            (job.thinking, job.budget) = thinking;
            job
        });
    prop::collection::vec(job, 1..8)
}

fn configs() -> impl Strategy<Value = EngineConfig> {
    (any::<bool>(), 1..17usize, 1..65usize).prop_map(|(prefix_cache, max_running, step_tokens)| {
        EngineConfig {
            prefix_cache,
            max_running,
            step_tokens,
            ..config()
        }
    })
}

/// Runs `jobs` twice over, the second time with a warm cache; compares every token, and the counts with what the
/// clients were told.
fn check(jobs: &[Job], config: EngineConfig, spare_blocks: usize) {
    let tokens = |job: &Job| job.prompt.len() + job.max_tokens as usize - 1;
    let largest = jobs
        .iter()
        .map(|job| tokens(job).div_ceil(BLOCK_TOKENS))
        .max()
        .unwrap();
    let prefix_cache = config.prefix_cache;
    let engine = start(Script::Hash, largest + spare_blocks, config);
    let (mut prompt_tokens, mut cached_tokens, mut generated) = (0, 0, 0);
    for _ in 0..2 {
        let streams: Vec<_> = jobs
            .iter()
            .map(|job| engine.submit(job.clone()).unwrap())
            .collect();
        for (job, stream) in jobs.iter().zip(streams) {
            let told = read(stream);
            assert_eq!(told.tokens, expected_tokens(Script::Hash, job));
            assert_eq!(told.finished, Some((FinishReason::Length, job.max_tokens)));
            let parts = (told.reasoning, told.text, told.reasoning_tokens);
            assert_eq!(parts, expected_parts(job, &told.tokens));
            let cached = told.cached.unwrap() as usize;
            assert!(cached < job.prompt.len() && cached.is_multiple_of(BLOCK_TOKENS));
            assert!(prefix_cache || cached == 0);
            prompt_tokens += job.prompt.len() as u64;
            cached_tokens += cached as u64;
            generated += u64::from(job.max_tokens);
        }
    }
    let stats = engine.stats();
    assert_eq!(
        (stats.prompt_tokens, stats.cached_tokens),
        (prompt_tokens, cached_tokens)
    );
    assert_eq!(
        (stats.generated_tokens, stats.finished),
        (generated, 2 * jobs.len() as u64)
    );
    assert_eq!(
        (stats.running, stats.waiting, stats.kv_blocks_used),
        (0, 0, 0)
    );
    engine.drain();
    engine.join();
}

proptest! {
    #[test]
    fn tokens_are_those_of_a_model_alone(
        jobs in jobs(), config in configs(), spare_blocks in 0..8usize,
    ) {
        check(&jobs, config, spare_blocks);
    }
}

/// vLLM #25780, #43736: neither a resumption nor a look while waiting is a hit.
#[test]
fn preempted_and_waiting_jobs_are_counted_once() {
    let jobs: Vec<_> = (0..6).map(|i| job(&"ab".repeat(10 + i), 60)).collect();
    let config = EngineConfig {
        max_running: 4,
        step_tokens: 32,
        ..config()
    };
    let engine = start(Script::Hash, 8, config);
    let streams: Vec<_> = jobs
        .iter()
        .map(|job| engine.submit(job.clone()).unwrap())
        .collect();
    let told: Vec<_> = streams.into_iter().map(read).collect();
    for (job, told) in jobs.iter().zip(&told) {
        assert_eq!(told.tokens, expected_tokens(Script::Hash, job));
    }
    let stats = engine.stats();
    assert!(
        stats.preemptions > 0,
        "the pool was to be too small for four at once"
    );
    let prompt_tokens: usize = jobs.iter().map(|job| job.prompt.len()).sum();
    let cached_tokens: u32 = told.iter().map(|told| told.cached.unwrap()).sum();
    assert_eq!(stats.prompt_tokens, prompt_tokens as u64);
    assert_eq!(stats.cached_tokens, u64::from(cached_tokens));
}
