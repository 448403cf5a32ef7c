//! One run of one row.

use replica_core::sampler::SamplingParams;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::BenchError;
use crate::engine::handle::EngineHandle;
use crate::engine::job::{Job, JobEvent, JobTerms};
use crate::engine::stream::JobStream;

/// What one run does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) prompt_tokens: u32,
    pub(super) streams: u32,
    pub(super) decode_tokens: u32,
}

/// What one run saw; times in seconds since its requests were submitted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run {
    /// First tokens of prompts never sent before, one a stream.
    pub(super) cold: Vec<f64>,
    /// First tokens of the same prompts once more.
    pub(super) warm: Vec<f64>,
    /// Prompt tokens whose KV was reused then, of all streams.
    pub(super) warm_cached_tokens: u64,
    /// Tokens a second of all streams, while all of them decode.
    pub(super) decode: f64,
}

/// Prompts that share nothing: pseudo-random tokens, each prompt from its own place in one sequence.
pub(super) struct Prompts {
    state: u64,
    vocab: u32,
}

impl Prompts {
    pub(super) fn new(vocab: usize) -> Prompts {
        Prompts {
            state: 1,
            vocab: u32::try_from(vocab).unwrap_or(u32::MAX).max(1),
        }
    }

    fn next(&mut self, tokens: u32) -> Vec<u32> {
        (0..tokens).map(|_| self.token()).collect()
    }

    /// Knuth's linear congruence; the high bits are the good ones.
    fn token(&mut self) -> u32 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 33) % u64::from(self.vocab)) as u32
    }
}

/// Sends the prompts cold for one token each, then again for the whole answer.
pub(super) async fn run(
    engine: &EngineHandle,
    shape: Shape,
    prompts: &mut Prompts,
) -> Result<Run, BenchError> {
    let texts: Vec<Vec<u32>> = (0..shape.streams)
        .map(|_| prompts.next(shape.prompt_tokens))
        .collect();
    let cold = send_all(engine, &texts, 1).await?;
    let warm = send_all(engine, &texts, shape.decode_tokens).await?;
    let first = |seen: &[Seen]| {
        seen.iter()
            .filter_map(|s| s.tokens.first().copied())
            .collect()
    };
    Ok(Run {
        cold: first(&cold),
        warm: first(&warm),
        warm_cached_tokens: warm.iter().map(|s| u64::from(s.cached_tokens)).sum(),
        decode: decode_rate(&warm),
    })
}

/// One stream's answer.
#[derive(Clone, Debug, Default)]
struct Seen {
    cached_tokens: u32,
    /// When each token came, in seconds since the start.
    tokens: Vec<f64>,
}

async fn send_all(
    engine: &EngineHandle,
    prompts: &[Vec<u32>],
    max_tokens: u32,
) -> Result<Vec<Seen>, BenchError> {
    let start = Instant::now();
    let mut streams = JoinSet::new();
    for prompt in prompts {
        let events = engine
            .submit(job(prompt.clone(), max_tokens))
            .map_err(|error| BenchError::Failed(error.to_string()))?;
        streams.spawn(watch(events, start));
    }
    let mut seen = Vec::new();
    while let Some(stream) = streams.join_next().await {
        seen.push(stream.map_err(|error| BenchError::Failed(error.to_string()))??);
    }
    Ok(seen)
}

async fn watch(mut events: JobStream, start: Instant) -> Result<Seen, BenchError> {
    let mut seen = Seen::default();
    while let Some(event) = events.recv().await {
        match event {
            JobEvent::Admitted { cached_tokens } => seen.cached_tokens = cached_tokens,
            JobEvent::Delta { tokens, .. } => {
                let now = start.elapsed().as_secs_f64();
                seen.tokens.extend(tokens.iter().map(|_| now));
            }
            JobEvent::Finished { .. } => return Ok(seen),
            JobEvent::Failed { message } => return Err(BenchError::Failed(message)),
        }
    }
    Err(BenchError::Failed("the engine stopped".to_owned()))
}

/// Tokens of all streams between the moment when the last of them had its first token and the moment when the first of
/// them had its last; 0 where there is no such time.
fn decode_rate(seen: &[Seen]) -> f64 {
    let firsts = seen.iter().filter_map(|s| s.tokens.first());
    let lasts = seen.iter().filter_map(|s| s.tokens.last());
    let begin = firsts.copied().fold(0.0, f64::max);
    let end = lasts.copied().fold(f64::INFINITY, f64::min);
    let within = |at: &&f64| **at > begin && **at <= end;
    let tokens = seen.iter().flat_map(|s| &s.tokens).filter(within).count();
    if end > begin {
        tokens as f64 / (end - begin)
    } else {
        0.0
    }
}

/// Greedy and without an end, so that every run does the same work.
fn job(prompt: Vec<u32>, max_tokens: u32) -> Job {
    Job {
        thinking: None,
        budget: None,
        prompt,
        sampling: SamplingParams {
            temperature: 0.0,
            top_p: 1.0,
            top_k: 0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            seed: 0,
        },
        stop_strings: Vec::new(),
        stop_tokens: Vec::new(),
        max_tokens,
        min_tokens: 0,
        cache_salt: None,
        logprobs: None,
        terms: JobTerms::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(streams: &[&[f64]], expect: f64) {
        let seen: Vec<Seen> = streams
            .iter()
            .map(|tokens| Seen {
                cached_tokens: 0,
                tokens: tokens.to_vec(),
            })
            .collect();
        assert_eq!(decode_rate(&seen), expect);
    }

    #[test]
    fn the_decode_rate_is_of_the_time_when_all_streams_decode() {
        check(&[&[1.0, 2.0, 3.0]], 1.0);
        check(&[&[1.0, 1.5, 2.0, 2.5, 3.0], &[2.0, 3.0, 4.0]], 3.0);
        check(&[&[1.0]], 0.0);
        check(&[&[1.0, 2.0], &[3.0, 4.0]], 0.0);
        check(&[], 0.0);
    }

    #[test]
    fn prompts_share_no_first_block() {
        let mut prompts = Prompts::new(100);
        let (a, b) = (prompts.next(16), prompts.next(16));
        assert_ne!(a, b);
        assert!(a.iter().chain(&b).all(|&token| token < 100));
    }
}
