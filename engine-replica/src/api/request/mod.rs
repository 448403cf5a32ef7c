//! A chat request's body, read into a typed value with everything checked.

use serde_json::{Map, Value};

use crate::failure::Failure;

mod fields;
mod messages;
mod nearest;
mod reader;
mod sampling;
#[cfg(test)]
mod tests;

use reader::{Bounds, Problems, Reader};

/// Longest model name, in bytes.
const MODEL_BYTES_MAX: usize = 256;
/// Longest cache salt, in bytes; vLLM's bound.
const SALT_BYTES_MAX: usize = 128;
/// Largest `max_tokens`; the context bounds it further.
const TOKENS_MAX: i64 = 1 << 30;

/// A chat request that can be rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatRequest {
    /// As named by the client; absent means whatever is served.
    pub model: Option<String>,
    /// In the shape that chat templates read: `role` and a string `content` are always there.
    pub messages: Vec<Value>,
    /// Top-level variables for the template.
    pub template_kwargs: Map<String, Value>,
    /// Whether the template opens the assistant's turn.
    pub add_generation_prompt: bool,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Whether a stream ends with a chunk of usage.
    pub include_usage: bool,
    /// How tokens are chosen, as far as the request says.
    pub sampling: SamplingWish,
    /// Strings that end the answer.
    pub stop_strings: Vec<String>,
    /// Tokens that end the answer besides the model's own.
    pub stop_token_ids: Vec<u32>,
    /// Whether the model's own end tokens are passed over.
    pub ignore_eos: bool,
    /// Least tokens to generate.
    pub min_tokens: u32,
    /// Most tokens to generate; absent means the rest of the context.
    pub max_tokens: Option<u32>,
    /// How long the model may and must think, as far as the request says.
    pub thinking: ThinkingWish,
    /// Log probabilities a token: `None` for none, `Some(n)` for the chosen one and the `n` likeliest.
    pub logprobs: Option<u8>,
    /// Keeps this request's cached blocks apart from those of other salts.
    pub cache_salt: Option<String>,
}

/// Sampling as far as the request names it; the model's own defaults fill the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplingWish {
    /// 0 to 2.
    pub temperature: Option<f32>,
    /// Above 0, at most 1.
    pub top_p: Option<f32>,
    /// 0 keeps all.
    pub top_k: Option<u32>,
    /// 0 to 1.
    pub min_p: Option<f32>,
    /// −2 to 2.
    pub presence_penalty: Option<f32>,
    /// −2 to 2.
    pub frequency_penalty: Option<f32>,
    /// Above 0.
    pub repetition_penalty: Option<f32>,
    /// Any 64 bits.
    pub seed: Option<u64>,
}

/// Bounds of the tokens between the marks of reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinkingWish {
    /// Most; `None` for no bound.
    pub most: Option<u32>,
    /// Least, `most` at most; 0 changes nothing.
    pub least: u32,
}

/// Reads a body. Every problem that can be told from the body alone is told at once.
///
/// # Errors
/// `BadJson` where the body is no JSON object, `Invalid` with the problems otherwise.
pub fn parse(body: &[u8]) -> Result<ChatRequest, Failure> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| Failure::BadJson(error.to_string()))?;
    let Value::Object(object) = value else {
        return Err(Failure::BadJson(format!(
            "it is `{}`",
            reader::shown(&value)
        )));
    };
    let mut problems = Problems::default();
    let request = read(&object, &mut problems);
    if problems.is_empty() {
        Ok(request)
    } else {
        Err(Failure::Invalid(problems.into_vec()))
    }
}

fn read(object: &Map<String, Value>, problems: &mut Problems) -> ChatRequest {
    let messages = messages::read(object.get("messages"), problems);
    let mut reader = Reader::new(object, "", problems);
    let reader = &mut reader;
    fields::check_names(reader, object.keys().cloned());
    let stream = reader.boolean("stream").unwrap_or(false);
    let max_tokens = read_max_tokens(reader);
    ChatRequest {
        model: reader.string("model", MODEL_BYTES_MAX).map(str::to_owned),
        messages,
        template_kwargs: reader
            .object("chat_template_kwargs")
            .cloned()
            .unwrap_or_default(),
        add_generation_prompt: reader.boolean("add_generation_prompt").unwrap_or(true),
        stream,
        include_usage: read_include_usage(reader, stream),
        sampling: sampling::read(reader),
        stop_strings: sampling::read_stop(reader),
        stop_token_ids: sampling::read_stop_ids(reader),
        ignore_eos: reader.boolean("ignore_eos").unwrap_or(false),
        min_tokens: read_min_tokens(reader, max_tokens),
        max_tokens,
        thinking: read_thinking(reader),
        logprobs: sampling::read_logprobs(reader),
        cache_salt: read_salt(reader),
    }
}

/// `max_completion_tokens` is the newer name of `max_tokens`; clients that send both must mean the same.
fn read_max_tokens(reader: &mut Reader<'_>) -> Option<u32> {
    let old = reader.integer("max_tokens", 1, TOKENS_MAX);
    let new = reader.integer("max_completion_tokens", 1, TOKENS_MAX);
    if let (Some(old), Some(new)) = (old, new)
        && old != new
    {
        let expected =
            format!("the same as `max_completion_tokens`, which is `{new}`; send one of them");
        reader.invalid("max_tokens", &expected);
    }
    new.or(old).and_then(|n| u32::try_from(n).ok())
}

fn read_min_tokens(reader: &mut Reader<'_>, max_tokens: Option<u32>) -> u32 {
    let max = max_tokens.map_or(TOKENS_MAX, i64::from);
    reader
        .integer("min_tokens", 0, max)
        .and_then(|n| u32::try_from(n).ok())
        .unwrap_or(0)
}

/// −1 is no budget, as vLLM has it.
fn read_thinking(reader: &mut Reader<'_>) -> ThinkingWish {
    let most = reader.integer("thinking_token_budget", -1, TOKENS_MAX);
    let least = reader.integer("min_thinking_tokens", 0, TOKENS_MAX);
    let most = most.and_then(|most| u32::try_from(most).ok());
    let least = least.and_then(|least| u32::try_from(least).ok());
    let least = least.unwrap_or(0);
    if let Some(most) = most
        && least > most
    {
        let expected = format!("at most `thinking_token_budget`, which is `{most}`");
        reader.invalid("min_thinking_tokens", &expected);
    }
    ThinkingWish { most, least }
}

fn read_include_usage(reader: &mut Reader<'_>, stream: bool) -> bool {
    let Some(options) = reader.object("stream_options") else {
        return false;
    };
    if !stream {
        reader.invalid("stream_options", "no such field unless `stream` is true");
    }
    let mut options_reader = Reader::new(options, "stream_options", reader.problems);
    let include = options_reader.boolean("include_usage").unwrap_or(false);
    for (name, value) in options {
        let path = options_reader.path(name);
        match name.as_str() {
            "include_usage" => {}
            // Padding against traffic analysis: not done here, and asking for none is asking for what is.
            "include_obfuscation" | "continuous_usage_stats" => {
                if value.as_bool() != Some(false) && !value.is_null() {
                    options_reader.problems.unsupported(
                        &path,
                        value,
                        "not there yet; leave it out",
                    );
                }
            }
            _ => {
                let message = format!("unknown field `{path}`; did you mean `include_usage`?");
                let code = crate::failure::ProblemCode::UnknownParameter;
                options_reader.problems.push(path, code, message);
            }
        }
    }
    include
}

/// Follows vLLM: the characters that it keeps for its own key encodings are refused here too, so that a client may move
/// between the two.
fn read_salt(reader: &mut Reader<'_>) -> Option<String> {
    let salt = reader.string("cache_salt", SALT_BYTES_MAX)?;
    if salt.is_empty() || salt.contains(['@', '/', '\\', '\0']) {
        reader.invalid(
            "cache_salt",
            "a string that is not empty and has no `@`, `/`, `\\` or NUL",
        );
        return None;
    }
    Some(salt.to_owned())
}
