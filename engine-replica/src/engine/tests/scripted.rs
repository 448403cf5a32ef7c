//! A model that anyone can check: each position's "KV" is a hash of the tokens up to it, chained through the block table,
//! so that a block with wrong content gives wrong tokens. Steps can be let through one by one.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use replica_core::BLOCK_TOKENS;
use replica_core::answer_text::{AnswerPart, AnswerText};
use replica_core::budget::ThinkGuard;
use replica_core::sampler::{History, Sampler, SamplingParams};
use replica_core::text_stream::TokenText;

use crate::engine::config::{EngineConfig, StartError};
use crate::engine::handle::EngineHandle;
use crate::engine::job::{FinishReason, Job, JobEvent, JobTerms};
use crate::engine::step::{StepBatch, StepError, StepModel};
use crate::engine::stream::JobStream;
use crate::engine::thread::EngineThread;

/// Tokens of the scripted models: `a` to `z`.
pub(super) const VOCAB: usize = 26;

/// Steps that a test may let through ahead of the engine.
const STEPS_AHEAD_MAX: usize = 1000;

/// What follows a prefix.
#[derive(Clone, Copy, Debug)]
pub(super) enum Script {
    /// The letter after the last one.
    Alphabet,
    /// Any letter, as a hash of the whole prefix has it.
    Hash,
    /// No number at all.
    Broken,
}

impl Script {
    /// `state` stands for all tokens up to `token`.
    fn logits(self, state: u64, token: u32) -> Vec<f32> {
        (0..VOCAB as u64)
            .map(|id| match self {
                Script::Alphabet => f32::from(id == (u64::from(token) + 1) % VOCAB as u64),
                Script::Hash => (mix(state, id) % 1000) as f32 / 250.0,
                Script::Broken => f32::NAN,
            })
            .collect()
    }
}

fn mix(state: u64, token: u64) -> u64 {
    let x = (state ^ token.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 29)
}

/// What a gated step does.
pub(super) enum Step {
    Go,
    Fail,
    Panic,
}

struct Scripted {
    script: Script,
    /// `(blocks · 16)` the state after each position.
    kv: Vec<u64>,
    /// Each step waits for one of these; without a gate, or once the test has dropped its end, steps go freely.
    gate: Option<Receiver<Step>>,
}

impl StepModel for Scripted {
    fn vocab(&self) -> usize {
        VOCAB
    }

    fn kv_blocks(&self) -> usize {
        self.kv.len() / BLOCK_TOKENS
    }

    fn forward(&mut self, batch: &StepBatch<'_>, logits: &mut Vec<f32>) -> Result<(), StepError> {
        match self
            .gate
            .as_ref()
            .map_or(Step::Go, |gate| gate.recv().unwrap_or(Step::Go))
        {
            Step::Go => {}
            Step::Fail => return Err(StepError("the test says so".to_owned())),
            Step::Panic => panic!("the test says so"),
        }
        logits.clear();
        for sequence in batch.sequences {
            let slot = |position: usize| {
                sequence.block_table[position / BLOCK_TOKENS] as usize * BLOCK_TOKENS
                    + position % BLOCK_TOKENS
            };
            for row in sequence.rows.clone() {
                let position = batch.positions[row] as usize;
                let before = position
                    .checked_sub(1)
                    .map_or(0, |before| self.kv[slot(before)]);
                self.kv[slot(position)] = mix(before, u64::from(batch.tokens[row]));
            }
            if sequence.wants_logits {
                let last = sequence.rows.end - 1;
                let state = self.kv[slot(batch.positions[last] as usize)];
                logits.extend(self.script.logits(state, batch.tokens[last]));
            }
        }
        Ok(())
    }
}

/// The tokens that `job` must give, computed with no engine.
pub(super) fn expected_tokens(script: Script, job: &Job) -> Vec<u32> {
    let mut sampler = Sampler::default();
    let mut output = Vec::new();
    let mut state = job
        .prompt
        .iter()
        .fold(0, |state, &token| mix(state, u64::from(token)));
    let mut last = *job.prompt.last().unwrap();
    while output.len() < job.max_tokens as usize {
        let history = History {
            prompt: &job.prompt,
            output: &output,
            banned: &[],
            forced: guard_after(job, &output).and_then(|guard| guard.forced()),
            logprobs: None,
        };
        let choice = sampler
            .choose(&script.logits(state, last), &job.sampling, history)
            .unwrap();
        last = choice.token;
        state = mix(state, u64::from(last));
        output.push(last);
        if job.stop_tokens.contains(&last) {
            break;
        }
    }
    output
}

/// Where a budget with no least stands after `output`, all of which is looked at again.
fn guard_after(job: &Job, output: &[u32]) -> Option<ThinkGuard> {
    let thinking = job.thinking?;
    let mut guard = ThinkGuard::new(job.budget.clone()?, thinking);
    for &token in output {
        guard.push(token, b"x");
    }
    Some(guard)
}

/// The reasoning and the content that a client must read of `tokens`, computed with no engine.
pub(super) fn expected_parts(job: &Job, tokens: &[u32]) -> (String, String, u32) {
    let letters = Letters::new();
    let mut text = AnswerText::new(job.thinking, job.stop_strings.clone());
    let (mut reasoning, mut content) = (String::new(), String::new());
    let mut deltas: Vec<_> = tokens
        .iter()
        .enumerate()
        .map(|(at, &token)| {
            let guard = guard_after(job, &tokens[..at]);
            if guard.is_some_and(|guard| guard.is_closing()) {
                text.push_closing(token, &letters)
            } else {
                text.push(token, &letters)
            }
        })
        .collect();
    deltas.push(text.finish());
    for delta in deltas {
        match delta.part {
            AnswerPart::Reasoning => reasoning += &delta.text,
            AnswerPart::Content => content += &delta.text,
        }
    }
    (reasoning, content, text.reasoning_tokens())
}

struct Letters(Vec<u8>);

impl Letters {
    fn new() -> Self {
        Self((b'a'..=b'z').collect())
    }
}

impl TokenText for Letters {
    fn bytes(&self, token: u32) -> &[u8] {
        self.0.get(token as usize).map_or(&[], std::slice::from_ref)
    }

    fn is_special(&self, _: u32) -> bool {
        false
    }
}

/// A running engine whose steps go freely.
pub(super) fn start(script: Script, kv_blocks: usize, config: EngineConfig) -> EngineHandle {
    try_start(script, kv_blocks, config).unwrap()
}

/// As `start`, where starting may fail.
pub(super) fn try_start(
    script: Script,
    kv_blocks: usize,
    config: EngineConfig,
) -> Result<EngineHandle, StartError> {
    start_model(script, kv_blocks, None, config)
}

/// As `start`, but every step waits for the test.
pub(super) fn start_gated(
    script: Script,
    kv_blocks: usize,
    config: EngineConfig,
) -> (EngineHandle, SyncSender<Step>) {
    let (steps, gate) = sync_channel(STEPS_AHEAD_MAX);
    (
        start_model(script, kv_blocks, Some(gate), config).unwrap(),
        steps,
    )
}

fn start_model(
    script: Script,
    kv_blocks: usize,
    gate: Option<Receiver<Step>>,
    config: EngineConfig,
) -> Result<EngineHandle, StartError> {
    let model = Scripted {
        script,
        kv: vec![0; kv_blocks * BLOCK_TOKENS],
        gate,
    };
    EngineThread::start(Box::new(model), config, Arc::new(Letters::new()))
}

/// Room enough for any test that is not about room.
pub(super) fn config() -> EngineConfig {
    EngineConfig::new("scripted", 1000)
}

pub(super) fn greedy() -> SamplingParams {
    SamplingParams {
        temperature: 0.0,
        top_p: 1.0,
        top_k: 0,
        min_p: 0.0,
        repetition_penalty: 1.0,
        presence_penalty: 0.0,
        frequency_penalty: 0.0,
        seed: 0,
    }
}

/// `prompt` in letters.
pub(super) fn job(prompt: &str, max_tokens: u32) -> Job {
    Job {
        thinking: None,
        budget: None,
        prompt: prompt
            .bytes()
            .map(|letter| u32::from(letter - b'a'))
            .collect(),
        sampling: greedy(),
        stop_strings: vec![],
        stop_tokens: vec![],
        max_tokens,
        min_tokens: 0,
        cache_salt: None,
        logprobs: None,
        terms: JobTerms::default(),
    }
}

/// Everything that a client was told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) cached: Option<u32>,
    pub(super) reasoning: String,
    pub(super) text: String,
    pub(super) reasoning_tokens: u32,
    pub(super) tokens: Vec<u32>,
    pub(super) finished: Option<(FinishReason, u32)>,
    pub(super) failed: Option<String>,
}

/// Reads a stream to its end and checks the order of its events.
pub(super) fn read(mut stream: JobStream) -> Told {
    let mut told = Told::default();
    while let Some(event) = stream.blocking_recv() {
        assert!(
            told.finished.is_none() && told.failed.is_none(),
            "something follows the end"
        );
        match event {
            JobEvent::Admitted { cached_tokens } => {
                assert_eq!(told.cached.replace(cached_tokens), None, "admitted twice");
            }
            JobEvent::Delta { part, text, tokens } => {
                assert!(told.cached.is_some(), "a delta before the admission");
                match part {
                    AnswerPart::Reasoning => {
                        assert_eq!(told.text, "", "reasoning after content");
                        told.reasoning += &text;
                    }
                    AnswerPart::Content => told.text += &text,
                }
                told.tokens.extend(tokens.iter().map(|token| token.id));
            }
            JobEvent::Finished {
                reason,
                completion_tokens,
                reasoning_tokens,
            } => {
                told.finished = Some((reason, completion_tokens));
                told.reasoning_tokens = reasoning_tokens;
            }
            JobEvent::Failed { message } => told.failed = Some(message),
        }
    }
    assert!(
        told.finished.is_some() || told.failed.is_some(),
        "a stream without an end"
    );
    told
}

/// Submits and reads to the end.
pub(super) fn ask(engine: &EngineHandle, job: Job) -> Told {
    read(engine.submit(job).unwrap())
}
