//! A checked request to a job for the engine.

use std::sync::Arc;

use replica_core::answer_text::Thinking;
use replica_core::budget::{ThinkBudget, ThinkWords};
use replica_core::sampler::SamplingParams;

use super::Served;
use super::request::{ChatRequest, SamplingWish, ThinkingWish};
use crate::engine::handle::SubmitError;
use crate::engine::job::{Job, JobTerms};
use crate::failure::{Failure, Problem, ProblemCode};

/// What a request leaves open, from the checkpoint's own generation settings where it has some.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingDefaults {
    /// OpenAI's 1 unless the checkpoint says otherwise.
    pub temperature: f32,
    /// 1 keeps all.
    pub top_p: f32,
    /// 0 keeps all.
    pub top_k: u32,
    /// 0 keeps all.
    pub min_p: f32,
    /// 1 changes nothing.
    pub repetition_penalty: f32,
}

impl Default for SamplingDefaults {
    fn default() -> SamplingDefaults {
        SamplingDefaults {
            temperature: 1.0,
            top_p: 1.0,
            top_k: 0,
            min_p: 0.0,
            repetition_penalty: 1.0,
        }
    }
}

/// Builds the job; `seed` is for a request that names none.
///
/// # Errors
/// `ContextLength` when prompt and answer do not fit, `Invalid` for a stop token that the model does not have and for a
/// budget of thinking where the model marks none.
pub(super) fn job(
    served: &Served,
    request: ChatRequest,
    prompt: Vec<u32>,
    thinks: Option<(Thinking, Arc<ThinkWords>)>,
    seed: u64,
) -> Result<Job, Failure> {
    let context = served.context_max;
    let asked = request.max_tokens;
    let needed = prompt.len() + asked.unwrap_or(1) as usize;
    if needed > context {
        return Err(Failure::ContextLength {
            prompt: prompt.len(),
            answer: asked,
            context,
        });
    }
    check_stop_tokens(&request.stop_token_ids, served.vocab)?;
    let rest = u32::try_from(context - prompt.len()).unwrap_or(u32::MAX);
    let mut stop_tokens = request.stop_token_ids;
    if !request.ignore_eos {
        stop_tokens.extend_from_slice(&served.eos);
    }
    let max_tokens = asked.unwrap_or(rest);
    let budget = budget(request.thinking, thinks.as_ref(), max_tokens)?;
    Ok(Job {
        prompt,
        thinking: thinks.map(|(thinking, _)| thinking),
        budget,
        sampling: sampling(&request.sampling, &served.defaults, seed),
        stop_strings: request.stop_strings,
        stop_tokens,
        max_tokens,
        min_tokens: request.min_tokens.min(rest),
        cache_salt: request.cache_salt,
        logprobs: request.logprobs,
        terms: JobTerms::default(),
    })
}

/// The bounds of thinking that hold, where the request names some.
fn budget(
    wish: ThinkingWish,
    thinks: Option<&(Thinking, Arc<ThinkWords>)>,
    max_tokens: u32,
) -> Result<Option<ThinkBudget>, Failure> {
    let ThinkingWish { most, least } = wish;
    let (param, value) = match (most, least) {
        (Some(most), _) => ("thinking_token_budget", most),
        (None, 1..) => ("min_thinking_tokens", least),
        (None, 0) => return Ok(None),
    };
    let Some((thinking, words)) = thinks else {
        let message = format!(
            "`{param}` is `{value}`: this model marks no reasoning, so there is nothing to count; leave the field out"
        );
        return Err(Failure::Invalid(vec![Problem {
            param: param.to_owned(),
            message,
            code: ProblemCode::Unsupported,
        }]));
    };
    let mut budget = ThinkBudget {
        words: Arc::clone(words),
        most,
        least,
    };
    budget.fit(*thinking, max_tokens);
    Ok(Some(budget))
}

fn check_stop_tokens(ids: &[u32], vocab: usize) -> Result<(), Failure> {
    let Some(stranger) = ids.iter().find(|&&id| id as usize >= vocab) else {
        return Ok(());
    };
    let message = format!("`stop_token_ids` has `{stranger}`, expected ids below {vocab}");
    let problem = Problem {
        param: "stop_token_ids".to_owned(),
        message,
        code: ProblemCode::InvalidValue,
    };
    Err(Failure::Invalid(vec![problem]))
}

fn sampling(wish: &SamplingWish, defaults: &SamplingDefaults, seed: u64) -> SamplingParams {
    SamplingParams {
        temperature: wish.temperature.unwrap_or(defaults.temperature),
        top_p: wish.top_p.unwrap_or(defaults.top_p),
        top_k: wish.top_k.unwrap_or(defaults.top_k),
        min_p: wish.min_p.unwrap_or(defaults.min_p),
        repetition_penalty: wish
            .repetition_penalty
            .unwrap_or(defaults.repetition_penalty),
        presence_penalty: wish.presence_penalty.unwrap_or(0.0),
        frequency_penalty: wish.frequency_penalty.unwrap_or(0.0),
        seed: wish.seed.unwrap_or(seed),
    }
}

/// What a client is told of a job that the engine did not take.
pub(super) fn refusal(error: SubmitError) -> Failure {
    match error {
        SubmitError::QueueFull { depth } => Failure::QueueFull { depth },
        SubmitError::Draining => Failure::Draining,
        SubmitError::Stopped => Failure::Stopped,
        SubmitError::TooLong { prompt, context } => Failure::ContextLength {
            prompt,
            answer: None,
            context,
        },
        SubmitError::NeverFits { .. } => Failure::NeverFits(error.to_string()),
        // Neither is the client's doing: `job` asks for at least one token, and the prompt came from our own tokenizer.
        SubmitError::Empty { .. } | SubmitError::UnknownToken { .. } => {
            Failure::Engine(error.to_string())
        }
    }
}
