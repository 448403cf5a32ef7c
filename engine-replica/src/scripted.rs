//! A model whose answers are known, for tests of everything above it.
//!
//! It says the letter after the last one: `abc` is answered `def…z` and then its end token. It computes a step only when
//! its gate lets it.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use replica_core::answer_text::{ThinkTokens, Thinking};
use replica_core::budget::ThinkWords;
use replica_core::text_stream::TokenText;

use crate::api::request::ChatRequest;
use crate::api::{Api, ChatFormat, SamplingDefaults, Served};
use crate::engine::config::EngineConfig;
use crate::engine::handle::EngineHandle;
use crate::engine::step::{StepBatch, StepError, StepModel};
use crate::engine::thread::EngineThread;
use crate::failure::Failure;

/// Ends an answer.
pub(crate) const END: u32 = 26;
/// Any character that is no letter.
const OTHER: u32 = 27;
/// `!` makes the step fail that has to go on after it, `?` makes the model panic.
const FAIL: u32 = 28;
const PANIC: u32 = 29;
const VOCAB: usize = 30;
pub(crate) const CONTEXT_MAX: usize = 128;

/// How many steps the model may still compute.
#[derive(Default)]
pub(crate) struct Gate {
    steps: Mutex<usize>,
    more: Condvar,
}

/// Longest wait at the gate; a test that forgets its model ends all the same.
const GATE_WAIT_MAX: Duration = Duration::from_secs(20);

impl Gate {
    pub(crate) fn open(&self, steps: usize) {
        *self.steps.lock().unwrap() += steps;
        self.more.notify_all();
    }

    fn pass(&self) {
        let steps = self.steps.lock().unwrap();
        let (mut steps, _) = self
            .more
            .wait_timeout_while(steps, GATE_WAIT_MAX, |steps| *steps == 0)
            .unwrap();
        *steps = steps.saturating_sub(1);
    }
}

struct Alphabet {
    gate: Arc<Gate>,
    kv_blocks: usize,
}

impl StepModel for Alphabet {
    fn vocab(&self) -> usize {
        VOCAB
    }

    fn kv_blocks(&self) -> usize {
        self.kv_blocks
    }

    fn forward(&mut self, batch: &StepBatch<'_>, logits: &mut Vec<f32>) -> Result<(), StepError> {
        self.gate.pass();
        logits.clear();
        for sequence in batch
            .sequences
            .iter()
            .filter(|sequence| sequence.wants_logits)
        {
            let last = batch.tokens[sequence.rows.end - 1];
            assert!(last != PANIC, "the model was told to panic");
            if last == FAIL {
                return Err(StepError("the model was told to fail".to_owned()));
            }
            let next = if last < END { last + 1 } else { 0 };
            let row = logits.len();
            logits.resize(row + VOCAB, 0.0);
            // So far above the others that no seed draws another letter: at 10 one in a thousand did.
            logits[row + next as usize] = 20.0;
        }
        Ok(())
    }
}

/// Letters for tokens, and a template that only joins what was said.
pub(crate) struct Letters;

impl TokenText for Letters {
    fn bytes(&self, token: u32) -> &[u8] {
        let at = token as usize;
        b"abcdefghijklmnopqrstuvwxyz\0 !?"
            .get(at..=at)
            .unwrap_or_default()
    }

    fn is_special(&self, token: u32) -> bool {
        token == END
    }
}

impl ChatFormat for Letters {
    fn prompt(&self, request: &ChatRequest) -> Result<Vec<u32>, Failure> {
        let mut prompt = Vec::new();
        for message in &request.messages {
            let text = message["content"].as_str().unwrap();
            if text == "refuse" {
                return Err(Failure::Template("the template refuses".to_owned()));
            }
            prompt.extend(text.bytes().map(|byte| match byte {
                b'a'..=b'z' => u32::from(byte - b'a'),
                b'!' => FAIL,
                b'?' => PANIC,
                _ => OTHER,
            }));
        }
        Ok(prompt)
    }

    fn thinking(&self, _: &[u32]) -> Option<Thinking> {
        None
    }

    fn think_words(&self) -> Option<Arc<ThinkWords>> {
        None
    }
}

/// As `Letters`, of a model that thinks between `d` and `g`.
struct ThinkingLetters;

impl ChatFormat for ThinkingLetters {
    fn prompt(&self, request: &ChatRequest) -> Result<Vec<u32>, Failure> {
        Letters.prompt(request)
    }

    fn thinking(&self, prompt: &[u32]) -> Option<Thinking> {
        Some(ThinkTokens { open: 3, close: 6 }.after(prompt, &Letters))
    }

    /// `z` and the mark close, `y` prolongs.
    fn think_words(&self) -> Option<Arc<ThinkWords>> {
        Some(Arc::new(ThinkWords {
            closing: vec![25, 6],
            prolong: vec![24],
            tool: None,
        }))
    }
}

/// An engine over the scripted model with a closed gate.
pub(crate) fn engine(queue_max: usize, max_running: usize) -> (EngineHandle, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let model = Alphabet {
        gate: Arc::clone(&gate),
        kv_blocks: 64,
    };
    let config = EngineConfig {
        max_running,
        step_tokens: 64,
        output_room: 0,
        kept_percent: 50,
        queue_max,
        prefix_cache: true,
        model_identity: "alphabet".to_owned(),
        context_max: CONTEXT_MAX,
    };
    (
        EngineThread::start(Box::new(model), config, Arc::new(Letters)).unwrap(),
        gate,
    )
}

/// An API over `engine`.
pub(crate) fn api(engine: EngineHandle) -> Arc<Api> {
    api_of(engine, Arc::new(Letters))
}

/// An API over `engine` whose model marks its reasoning: `d` opens, `g` closes.
pub(crate) fn thinking_api(engine: EngineHandle) -> Arc<Api> {
    api_of(engine, Arc::new(ThinkingLetters))
}

fn api_of(engine: EngineHandle, format: Arc<dyn ChatFormat>) -> Arc<Api> {
    let served = Served {
        model: "alphabet".into(),
        name: "replica-0".to_owned(),
        device: "scripted".to_owned(),
        instance: "instance-1".to_owned(),
        context_max: CONTEXT_MAX,
        vocab: VOCAB,
        eos: vec![END],
        defaults: SamplingDefaults::default(),
        prefix_cache: true,
        trust_hints: true,
    };
    Arc::new(Api::new(engine, format, Arc::new(Letters), served).unwrap())
}

/// Steps enough for anything that a test asks.
pub(crate) const MANY: usize = 100_000;
