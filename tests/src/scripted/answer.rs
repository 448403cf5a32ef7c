//! What a scripted replica reads of a request and writes in an answer.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Response, StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};

/// The model that every scripted replica serves.
pub const MODEL: &str = "scripted";

/// The answers' type.
pub(super) type Reply = Response<Full<Bytes>>;

/// A request as far as an answer depends on it.
pub(super) struct Question {
    /// The prompt as a template would write it: tools, then the messages, one after the other.
    pub(super) prompt: Vec<u8>,
    stream: bool,
    usage_in_stream: bool,
}

impl Question {
    /// Reads a body; what is wrong with it where it is none.
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        let body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let messages = body["messages"]
            .as_array()
            .ok_or("`messages` is not a list")?;
        let mut prompt = Vec::new();
        if !body["tools"].is_null() {
            prompt.extend_from_slice(body["tools"].to_string().as_bytes());
        }
        for message in messages {
            write_message(&mut prompt, message);
        }
        Ok(Self {
            prompt,
            stream: body["stream"] == true,
            usage_in_stream: body["stream_options"]["include_usage"] == true,
        })
    }

    /// The answer, which says what of the prompt was cached.
    pub(super) fn answer(&self, prompt_tokens: u64, cached_tokens: u64) -> Reply {
        let usage = json!({
            "prompt_tokens": prompt_tokens,
            "completion_tokens": 1,
            "total_tokens": prompt_tokens + 1,
            "prompt_tokens_details": {"cached_tokens": cached_tokens},
        });
        if self.stream {
            return self.stream_of(&usage);
        }
        let choice = json!({"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"});
        let answer = json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], "usage": usage,
        });
        reply(StatusCode::OK, "application/json", answer.to_string())
    }

    fn stream_of(&self, usage: &Value) -> Reply {
        let chunk = |choices: Value, usage: Option<&Value>| {
            let chunk = json!({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices, "usage": usage,
            });
            format!("data: {chunk}\n\n")
        };
        let delta = |delta: Value, end: Option<&str>| {
            chunk(
                json!([{"index": 0, "delta": delta, "finish_reason": end}]),
                None,
            )
        };
        let mut text = delta(json!({"role": "assistant", "content": ""}), None);
        text += &delta(json!({"content": "Yes."}), None);
        text += &delta(json!({}), Some("stop"));
        if self.usage_in_stream {
            text += &chunk(json!([]), Some(usage));
        }
        text += "data: [DONE]\n\n";
        reply(StatusCode::OK, "text/event-stream", text)
    }
}

/// Writes one message as a template would: who speaks, what is said, which tools are called.
fn write_message(prompt: &mut Vec<u8>, message: &Value) {
    let role = message["role"].as_str().unwrap_or_default();
    prompt.extend_from_slice(role.as_bytes());
    prompt.push(b'\n');
    match &message["content"] {
        Value::Null => {}
        Value::String(text) => prompt.extend_from_slice(text.as_bytes()),
        parts => prompt.extend_from_slice(parts.to_string().as_bytes()),
    }
    if !message["tool_calls"].is_null() {
        prompt.extend_from_slice(message["tool_calls"].to_string().as_bytes());
    }
    prompt.push(b'\n');
}

/// An answer of any kind.
pub(super) fn reply(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static(kind);
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

/// The whole body, or what went wrong.
pub(super) async fn collect(body: hyper::body::Incoming) -> Result<Bytes, String> {
    let body = body.collect().await.map_err(|error| error.to_string())?;
    Ok(body.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::Question;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(body: &Value, expect: Result<&str, &str>) {
        let read = Question::read(body.to_string().as_bytes());
        let prompt = read.map(|question| String::from_utf8(question.prompt).unwrap());
        assert_eq!(prompt.as_deref().map_err(String::as_str), expect, "{body}");
    }

    #[test]
    fn a_prompt_is_its_tools_and_messages_and_nothing_else() {
        let messages =
            json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]);
        let plain = "system\nBe brief.\nuser\nHi\n";
        check(&json!({"messages": messages}), Ok(plain));
        check(
            &json!({"temperature": 1, "stream": true, "messages": messages}),
            Ok(plain),
        );
        check(
            &json!({"messages": messages, "tools": [1]}),
            Ok(&format!("[1]{plain}")),
        );
        check(
            &json!({"messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]}]}),
            Ok("assistant\n[{\"id\":\"a\"}]\n"),
        );
        check(&json!({"messages": "x"}), Err("`messages` is not a list"));
    }
}
