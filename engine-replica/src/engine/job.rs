//! What crosses the queue between the async side and the engine thread.

use std::time::Duration;

use replica_core::answer_text::{AnswerPart, Thinking};
use replica_core::budget::ThinkBudget;
use replica_core::fairness::Priority;

/// What a trusted gateway says of a job; by default nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobTerms {
    /// The session that the job belongs to.
    pub session: Option<String>,
    /// How long that session's KV is worth keeping once the job has ended.
    pub keep: Option<Duration>,
    /// Whose job it is; tenants share the replica fairly.
    pub tenant: Option<String>,
    /// How urgent it is.
    pub priority: Priority,
}

/// What a trusted gateway says of a session between its jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionWish {
    /// Its KV is worth keeping for so long from now.
    Keep(String, Duration),
    /// It has ended or moved away.
    Release(String),
}

/// A request that has been validated, rendered and tokenised.
#[derive(Clone, Debug)]
pub struct Job {
    /// Token ids of the rendered prompt; never empty, shorter than the context.
    pub prompt: Vec<u32>,
    /// How the answer's reasoning is told from its content; `None` for a model that marks none.
    pub thinking: Option<Thinking>,
    /// How long it may or must think; nothing where `thinking` is `None`.
    pub budget: Option<ThinkBudget>,
    /// How tokens are chosen.
    pub sampling: replica_core::sampler::SamplingParams,
    /// Strings that end the answer; matched on the text of the content, never sent to the client.
    pub stop_strings: Vec<String>,
    /// Tokens that end the answer, the model's own end tokens among them unless `ignore_eos`.
    pub stop_tokens: Vec<u32>,
    /// Most tokens to generate, at least 1; the engine ends at the context's end too.
    pub max_tokens: u32,
    /// Least tokens before a stop token may end the answer.
    pub min_tokens: u32,
    /// Isolates the prefix cache: jobs share blocks only under an equal salt.
    pub cache_salt: Option<String>,
    /// How many log probabilities to report per token: `None` for none, `Some(0)` for the chosen one only.
    pub logprobs: Option<u8>,
    /// Session, tenant and priority.
    pub terms: JobTerms,
}

/// What the engine tells the async side about one job, in order: `Admitted` once, `Delta` any number, then
/// `Finished` or `Failed` once. A dropped receiver cancels the job before the next step.
#[derive(Clone, Debug)]
pub enum JobEvent {
    /// First scheduled; `cached_tokens` of the prompt came from the prefix cache (counted once, not after preemption).
    Admitted {
        /// Prompt tokens whose KV was reused.
        cached_tokens: u32,
    },
    /// New text, valid UTF-8, already past stop-string holdback.
    Delta {
        /// What the text and the tokens belong to: `Reasoning` first, if at all, then `Content`.
        part: AnswerPart,
        /// May be empty where a token completed no character, or is a mark.
        text: String,
        /// The tokens that this delta accounts for.
        tokens: Vec<TokenInfo>,
    },
    /// The end, with the final counts.
    Finished {
        /// Why it ended.
        reason: FinishReason,
        /// Tokens generated, the stop token and the marks of reasoning among them.
        completion_tokens: u32,
        /// Those of them that were reasoning, without its marks and what was written to end it by force.
        reasoning_tokens: u32,
    },
    /// The engine could not go on; the message is for the client.
    Failed {
        /// Says what happened and what to do.
        message: String,
    },
}

/// One generated token.
#[derive(Clone, Debug)]
pub struct TokenInfo {
    /// Its id.
    pub id: u32,
    /// Natural-log probability before temperature and cut-offs, when asked for.
    pub logprob: Option<f32>,
    /// The likeliest tokens with their log probabilities, when asked for.
    pub top: Vec<(u32, f32)>,
}

/// Why an answer ended, in OpenAI's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// A stop token or stop string.
    Stop,
    /// `max_tokens` or the context's end.
    Length,
}
