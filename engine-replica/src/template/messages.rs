//! OpenAI's messages as chat templates want them.

use serde_json::Value;

use super::TemplateError;

/// Text parts become one string, tool-call arguments an object; all else stays as the client sent it.
pub(super) fn prepare(messages: &[Value]) -> Result<Vec<Value>, TemplateError> {
    let mut prepared = messages.to_vec();
    for (index, message) in prepared.iter_mut().enumerate() {
        let Some(message) = message.as_object_mut() else {
            return Err(TemplateError::Message(format!(
                "`messages[{index}]` is not an object"
            )));
        };
        if let Some(content) = message.get_mut("content")
            && let Value::Array(parts) = content
        {
            *content = Value::String(join_parts(parts, index)?);
        }
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            parse_arguments(call);
        }
    }
    Ok(prepared)
}

/// A newline goes between parts, as other engines put it: clients send separate documents as separate parts.
fn join_parts(parts: &[Value], message: usize) -> Result<String, TemplateError> {
    let mut texts = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        match (part["type"].as_str(), part["text"].as_str()) {
            (Some("text"), Some(text)) => texts.push(text),
            _ => {
                return Err(TemplateError::Message(format!(
                    "`messages[{message}].content[{index}]` has type {}, expected `text`: this model reads only text",
                    part["type"]
                )));
            }
        }
    }
    Ok(texts.join("\n"))
}

/// Clients send arguments as a string of JSON; templates write them with `tojson`, which would quote a string again.
fn parse_arguments(call: &mut Value) {
    let Some(arguments) = call.pointer_mut("/function/arguments") else {
        return;
    };
    let parsed = arguments
        .as_str()
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    if let Some(parsed @ Value::Object(_)) = parsed {
        *arguments = parsed;
    }
}
