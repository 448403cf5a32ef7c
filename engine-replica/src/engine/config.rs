//! What the engine is started with.

/// Sequences that run at once unless the operator says otherwise.
pub const MAX_RUNNING_DEFAULT: usize = 16;

/// Tokens of one step unless the operator says otherwise: a prompt's chunk delays the decodes beside it by no more than
/// these take.
pub const STEP_TOKENS_DEFAULT: usize = 512;

/// Jobs that may wait unless the operator says otherwise.
pub const QUEUE_MAX_DEFAULT: usize = 256;

/// Tokens of output that a request must find room for before it is begun, unless the operator says otherwise.
pub const OUTPUT_ROOM_DEFAULT: usize = 128;

/// Percent of the KV blocks that hints may keep unless the operator says otherwise.
pub const KEPT_PERCENT_DEFAULT: usize = 50;

/// Bounds and switches of one engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Sequences that may hold KV blocks at once; at least 1.
    pub max_running: usize,
    /// Tokens that one step may compute; at least 1.
    pub step_tokens: usize,
    /// Tokens of output that a job must find room for before it is begun, beside as many for each that runs.
    pub output_room: usize,
    /// Percent of the KV blocks that hints may keep, 0 to 100.
    pub kept_percent: usize,
    /// Jobs that may wait for their first admission; at least 1.
    pub queue_max: usize,
    /// Sequences reuse the KV of equal prefixes. Off is for measurements.
    pub prefix_cache: bool,
    /// Names the checkpoint, its revision and whatever else changes the KV; part of every block key.
    pub model_identity: String,
    /// Positions of a prompt and its answer together; at least 2.
    pub context_max: usize,
}

impl EngineConfig {
    /// The defaults for one model.
    pub fn new(model_identity: impl Into<String>, context_max: usize) -> Self {
        Self {
            max_running: MAX_RUNNING_DEFAULT,
            step_tokens: STEP_TOKENS_DEFAULT,
            output_room: OUTPUT_ROOM_DEFAULT,
            kept_percent: KEPT_PERCENT_DEFAULT,
            queue_max: QUEUE_MAX_DEFAULT,
            prefix_cache: true,
            model_identity: model_identity.into(),
            context_max,
        }
    }

    /// All that keeps an engine from starting with this and a model of `kv_blocks` blocks and `vocab` tokens.
    pub(super) fn problems(&self, kv_blocks: usize, vocab: usize) -> Vec<String> {
        let at_least = [
            ("max_running", self.max_running, 1),
            ("step_tokens", self.step_tokens, 1),
            ("queue_max", self.queue_max, 1),
            ("context_max", self.context_max, 2),
            ("the model's KV blocks", kv_blocks, 1),
            ("the model's vocabulary", vocab, 1),
        ];
        at_least
            .iter()
            .filter(|(_, value, least)| value < least)
            .map(|(name, value, least)| format!("`{name}` is {value}, expected at least {least}"))
            .collect()
    }
}

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Everything that is wrong with the configuration, one line each.
    #[error("the engine cannot start: {}", .0.join("; "))]
    Config(Vec<String>),
    /// The operating system gave no thread.
    #[error("the engine cannot start: no thread: {0}")]
    Thread(#[from] std::io::Error),
}
