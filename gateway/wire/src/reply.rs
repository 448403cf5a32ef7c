//! Answers as they are written: `chat.completion`, `chat.completion.chunk` and the model list.
//!
//! Field order and the presence of nulls follow OpenAI's own answers, which the official clients are typed after.

use bytes::Bytes;
use serde::Serialize;

use crate::usage::Usage;

/// One whole answer.
#[derive(Clone, Debug, Serialize)]
pub struct ChatCompletion<'a> {
    /// The answer's own id, such as `chatcmpl-…`.
    pub id: &'a str,
    /// Always [`ChatCompletion::OBJECT`].
    pub object: &'static str,
    /// When the answer was begun, in seconds since 1970.
    pub created: u64,
    /// The model that answered.
    pub model: &'a str,
    /// Which build and weights answered, where the replica says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_fingerprint: Option<&'a str>,
    /// One per answer asked for.
    pub choices: Vec<Choice<'a>>,
    /// What it took.
    pub usage: Usage,
}

impl ChatCompletion<'_> {
    /// The value of `object`.
    pub const OBJECT: &'static str = "chat.completion";

    /// The JSON body of a response.
    #[must_use]
    pub fn to_json(&self) -> Bytes {
        to_json(self)
    }
}

/// One answer of a [`ChatCompletion`].
#[derive(Clone, Debug, Serialize)]
pub struct Choice<'a> {
    /// Its place among the answers asked for, from 0.
    pub index: u32,
    /// What the model said.
    pub message: Message<'a>,
    /// Log probabilities, where asked for; null otherwise.
    pub logprobs: Option<Logprobs>,
    /// Why the answer ended: `stop`, `length`, `tool_calls`, `content_filter`.
    pub finish_reason: &'a str,
}

/// What the model said, whole.
#[derive(Clone, Debug, Serialize)]
pub struct Message<'a> {
    /// Always `assistant`.
    pub role: &'static str,
    /// The text; null where there is none, as beside tool calls.
    pub content: Option<&'a str>,
    /// The reasoning, where it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<&'a str>,
    /// The tools that the model wants called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall<'a>>,
}

/// One piece of a streamed answer.
#[derive(Clone, Debug, Serialize)]
pub struct ChatCompletionChunk<'a> {
    /// The answer's own id, the same in every chunk.
    pub id: &'a str,
    /// Always [`ChatCompletionChunk::OBJECT`].
    pub object: &'static str,
    /// When the answer was begun, in seconds since 1970; the same in every chunk.
    pub created: u64,
    /// The model that answers.
    pub model: &'a str,
    /// Which build and weights answer, where the replica says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_fingerprint: Option<&'a str>,
    /// What is new; empty in the chunk that carries only usage.
    pub choices: Vec<ChunkChoice<'a>>,
    /// What it took, in the last chunk where the client asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl ChatCompletionChunk<'_> {
    /// The value of `object`.
    pub const OBJECT: &'static str = "chat.completion.chunk";

    /// The chunk as one server-sent event.
    #[must_use]
    pub fn to_event(&self) -> Bytes {
        crate::sse::encode(&to_json(self))
    }
}

/// What is new in one answer of a [`ChatCompletionChunk`].
#[derive(Clone, Debug, Serialize)]
pub struct ChunkChoice<'a> {
    /// Its place among the answers asked for, from 0.
    pub index: u32,
    /// The new text; an empty object in the chunk that only ends the answer.
    pub delta: Delta<'a>,
    /// Log probabilities of the new tokens, where asked for; null otherwise.
    pub logprobs: Option<Logprobs>,
    /// Why the answer ended; null until then.
    pub finish_reason: Option<&'a str>,
}

/// New text of one answer; a field that is `None` or empty is left out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Delta<'a> {
    /// `assistant`, in the first chunk only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'a str>,
    /// New text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<&'a str>,
    /// New reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<&'a str>,
    /// New pieces of tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall<'a>>,
}

/// A tool call, or a piece of one in a stream.
#[derive(Clone, Debug, Serialize)]
pub struct ToolCall<'a> {
    /// Its place among the calls, from 0: in streams only, where pieces must be told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The call's id; in a stream only in its first piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    /// Always `function`; in a stream only in its first piece.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'a str>,
    /// What to call.
    pub function: FunctionCall<'a>,
}

/// The function of a tool call.
#[derive(Clone, Debug, Serialize)]
pub struct FunctionCall<'a> {
    /// Its name; in a stream only in the first piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// Its arguments as JSON text, or the next piece of that text.
    pub arguments: &'a str,
}

/// Log probabilities of an answer's tokens.
#[derive(Clone, Debug, Serialize)]
pub struct Logprobs {
    /// One per token of the content, in order.
    pub content: Vec<TokenLogprob>,
}

/// One token with its probability and the likeliest others.
#[derive(Clone, Debug, Serialize)]
pub struct TokenLogprob {
    /// The token's text; bytes that are no text alone become U+FFFD.
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// The token's own bytes.
    pub bytes: Vec<u8>,
    /// The likeliest tokens at this place, likeliest first.
    pub top_logprobs: Vec<TopLogprob>,
}

/// One of the likeliest tokens at a place.
#[derive(Clone, Debug, Serialize)]
pub struct TopLogprob {
    /// The token's text.
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// The token's own bytes.
    pub bytes: Vec<u8>,
}

/// The answer to `GET /v1/models`.
#[derive(Clone, Debug, Serialize)]
pub struct ModelList<'a> {
    /// Always [`ModelList::OBJECT`].
    pub object: &'static str,
    /// The models that can be asked.
    pub data: Vec<Model<'a>>,
}

impl ModelList<'_> {
    /// The value of `object`.
    pub const OBJECT: &'static str = "list";

    /// The JSON body of a response.
    #[must_use]
    pub fn to_json(&self) -> Bytes {
        to_json(self)
    }
}

/// One model of a [`ModelList`].
#[derive(Clone, Debug, Serialize)]
pub struct Model<'a> {
    /// The name to put into a request.
    pub id: &'a str,
    /// Always [`Model::OBJECT`].
    pub object: &'static str,
    /// When it was loaded, in seconds since 1970.
    pub created: u64,
    /// Who serves it.
    pub owned_by: &'a str,
    /// The context in tokens, where known (vLLM's field).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_model_len: Option<u32>,
}

impl Model<'_> {
    /// The value of `object`.
    pub const OBJECT: &'static str = "model";
}

#[expect(
    clippy::expect_used,
    reason = "the types of this crate are structs of strings, numbers and lists, which serde_json cannot fail to write to memory"
)]
pub(crate) fn to_json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value)
        .expect("plain structs serialise")
        .into()
}

#[cfg(test)]
mod tests;
