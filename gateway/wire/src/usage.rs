//! Token counts of one answer, as they are written.

use serde::Serialize;

/// `usage` of an answer. Both details are always there, also when they are 0: a client must be able to tell "none" from "unknown".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Tokens of the rendered prompt, those from the cache among them.
    pub prompt_tokens: u32,
    /// Tokens generated, reasoning and the stop token among them.
    pub completion_tokens: u32,
    /// The sum of both.
    pub total_tokens: u32,
    /// Where the prompt's tokens came from.
    pub prompt_tokens_details: PromptTokensDetails,
    /// What the generated tokens were spent on.
    pub completion_tokens_details: CompletionTokensDetails,
}

/// Where the prompt's tokens came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PromptTokensDetails {
    /// Prompt tokens whose KV was reused.
    pub cached_tokens: u32,
}

/// What the generated tokens were spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CompletionTokensDetails {
    /// Tokens of the reasoning, markers not counted.
    pub reasoning_tokens: u32,
}

impl Usage {
    /// All counts in tokens; `cached` is part of `prompt`, `reasoning` part of `completion`.
    #[must_use]
    pub fn new(prompt: u32, cached: u32, completion: u32, reasoning: u32) -> Self {
        Self {
            prompt_tokens: prompt,
            completion_tokens: completion,
            total_tokens: prompt.saturating_add(completion),
            prompt_tokens_details: PromptTokensDetails {
                cached_tokens: cached,
            },
            completion_tokens_details: CompletionTokensDetails {
                reasoning_tokens: reasoning,
            },
        }
    }
}
