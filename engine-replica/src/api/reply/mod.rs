//! The engine's events, told as an OpenAI answer: in one piece or as a stream.

use std::sync::Arc;

use chat_wire::usage::Usage;
use replica_core::text_stream::TokenText;

use crate::engine::job::FinishReason;

mod logprobs;
mod stream;
#[cfg(test)]
mod tests;
mod timer;
mod whole;

pub(crate) use stream::StreamBody;
pub(crate) use timer::Timer;
pub(crate) use whole::whole;

/// What stays the same through one answer.
pub(crate) struct Answer {
    /// `chatcmpl-…`.
    pub(crate) id: String,
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// The served model's id.
    pub(crate) model: Arc<str>,
    /// Tokens of the rendered prompt.
    pub(crate) prompt_tokens: u32,
    /// Whether a stream ends with a chunk of usage.
    pub(crate) include_usage: bool,
    /// Whether the tokens' log probabilities are told.
    pub(crate) logprobs: bool,
    /// What tokens stand for.
    pub(crate) vocabulary: Arc<dyn TokenText>,
}

impl Answer {
    fn usage(&self, cached_tokens: u32, completion_tokens: u32, reasoning_tokens: u32) -> Usage {
        Usage::new(
            self.prompt_tokens,
            cached_tokens,
            completion_tokens,
            reasoning_tokens,
        )
    }
}

/// OpenAI's word for an ending.
fn finish_word(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
    }
}
