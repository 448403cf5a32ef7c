//! One whole answer, gathered from the chunks of a stream.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::limits::BODY_BYTES_MAX;
use crate::reshape::CHOICES_MAX;

/// Most tool calls of one choice that are gathered.
const CALLS_MAX: u64 = 1024;

/// The answer so far.
#[derive(Debug, Default)]
pub struct Gather {
    /// What stands beside choices and usage, of the first chunk that has it.
    head: Map<String, Value>,
    choices: BTreeMap<u64, Choice>,
    usage: Option<Value>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Choice {
    message: Map<String, Value>,
    calls: BTreeMap<u64, Map<String, Value>>,
    finish: Value,
}

/// Why chunks make no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatherError {
    /// This is no JSON object, or an error.
    NoChunk,
    /// The answer is larger than any.
    TooLarge,
}

impl Gather {
    /// The data of the next event, without `[DONE]`.
    ///
    /// # Errors
    /// It is no chunk, or one too many.
    pub fn push(&mut self, data: &[u8]) -> Result<(), GatherError> {
        self.bytes = self.bytes.saturating_add(data.len());
        if self.bytes > BODY_BYTES_MAX {
            return Err(GatherError::TooLarge);
        }
        let Ok(Value::Object(chunk)) = serde_json::from_slice(data) else {
            return Err(GatherError::NoChunk);
        };
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(GatherError::NoChunk);
        }
        for (name, value) in chunk {
            match (&*name, value) {
                ("object", _) | (_, Value::Null) => {}
                ("choices", Value::Array(all)) => {
                    all.into_iter().try_for_each(|one| self.choice(one))?
                }
                ("usage", usage) => self.usage = Some(usage),
                (_, value) => {
                    self.head.entry(name).or_insert(value);
                }
            }
        }
        Ok(())
    }

    fn choice(&mut self, mut one: Value) -> Result<(), GatherError> {
        let index = one.get("index").and_then(Value::as_u64).unwrap_or(0);
        if !self.choices.contains_key(&index) && self.choices.len() == CHOICES_MAX {
            return Err(GatherError::TooLarge);
        }
        let choice = self.choices.entry(index).or_default();
        if let Some(finish) = one
            .get_mut("finish_reason")
            .filter(|finish| !finish.is_null())
        {
            choice.finish = finish.take();
        }
        let Some(Value::Object(delta)) = one.get_mut("delta").map(Value::take) else {
            return Ok(());
        };
        for (name, value) in delta {
            match (&*name, value) {
                ("tool_calls", Value::Array(calls)) => {
                    calls.into_iter().try_for_each(|call| choice.call(call))?
                }
                (_, value) => merge(&mut choice.message, name, value),
            }
        }
        Ok(())
    }

    /// The whole answer as JSON; `None` where no choice came.
    #[must_use]
    pub fn finish(self) -> Option<Vec<u8>> {
        if self.choices.is_empty() {
            return None;
        }
        let choices: Vec<Value> = self
            .choices
            .into_iter()
            .map(|(index, choice)| choice.finish(index))
            .collect();
        let mut answer = self.head;
        answer.insert("object".to_owned(), json!("chat.completion"));
        answer.insert("choices".to_owned(), choices.into());
        answer.extend(self.usage.map(|usage| ("usage".to_owned(), usage)));
        serde_json::to_vec(&answer).ok()
    }
}

impl Choice {
    fn call(&mut self, call: Value) -> Result<(), GatherError> {
        let Value::Object(mut call) = call else {
            return Ok(());
        };
        let index = call.remove("index").and_then(|index| index.as_u64());
        let index = index.unwrap_or(0);
        if index >= CALLS_MAX {
            return Err(GatherError::TooLarge);
        }
        let whole = self.calls.entry(index).or_default();
        let function = call.remove("function");
        for (name, value) in call {
            if !value.is_null() {
                whole.insert(name, value);
            }
        }
        if let Some(Value::Object(parts)) = function {
            let function = whole.entry("function").or_insert_with(|| json!({}));
            if let Value::Object(function) = function {
                for (name, value) in parts {
                    merge(function, name, value);
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, index: u64) -> Value {
        self.message.entry("role").or_insert(json!("assistant"));
        let empty = self.message.get("content").is_none_or(|text| text == "");
        if empty {
            self.message.insert("content".to_owned(), Value::Null);
        }
        if !self.calls.is_empty() {
            let calls: Vec<Value> = self.calls.into_values().map(Value::Object).collect();
            self.message.insert("tool_calls".to_owned(), calls.into());
        }
        json!({"index": index, "message": self.message, "finish_reason": self.finish})
    }
}

/// Text goes behind the text that is there; a role and everything else is as it was said last.
fn merge(into: &mut Map<String, Value>, name: String, value: Value) {
    match (into.get_mut(&name), value) {
        (_, Value::Null) => {}
        (Some(Value::String(text)), Value::String(more)) if name != "role" => text.push_str(&more),
        (_, value) => {
            into.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(chunks: &[&str], expect: Result<&str, GatherError>) {
        let mut gather = Gather::default();
        let pushed = chunks
            .iter()
            .try_for_each(|chunk| gather.push(chunk.as_bytes()));
        let answer = pushed.map(|()| gather.finish().unwrap_or_default());
        // Members may come in any order.
        let value = |text: &[u8]| serde_json::from_slice::<Value>(text).ok();
        let answer = answer.map(|answer| value(&answer));
        assert_eq!(answer, expect.map(|text| value(text.as_bytes())));
    }

    #[test]
    fn chunks_make_the_answer_that_they_are_of() {
        check(
            &[
                r#"{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
                r#"{"id":"c","choices":[{"index":0,"delta":{"reasoning_content":"w"}}]}"#,
                r#"{"id":"c","choices":[{"index":0,"delta":{"reasoning_content":"hy","role":null}}]}"#,
                r#"{"id":"c","choices":[{"index":0,"delta":{"content":"So."},"finish_reason":"stop"}]}"#,
                r#"{"id":"c","choices":[],"usage":{"prompt_tokens":3}}"#,
            ],
            Ok(
                r#"{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"So.","reasoning_content":"why","role":"assistant"}}],"id":"c","object":"chat.completion","usage":{"prompt_tokens":3}}"#,
            ),
        );
    }

    #[test]
    fn tool_calls_are_put_together_by_their_index() {
        check(
            &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"1"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]},"finish_reason":"tool_calls"}]}"#,
            ],
            Ok(
                r#"{"choices":[{"finish_reason":"tool_calls","index":0,"message":{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"f"},"id":"a","type":"function"},{"function":{"arguments":"1","name":"g"},"id":"b"}]}}],"object":"chat.completion"}"#,
            ),
        );
    }

    #[test]
    fn what_is_no_chunk_makes_no_answer() {
        check(&["1"], Err(GatherError::NoChunk));
        check(&[r#"{"error":{"message":"x"}}"#], Err(GatherError::NoChunk));
        let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":1024}]}}]}"#;
        check(&[call], Err(GatherError::TooLarge));
        check(&[r#"{"choices":[]}"#], Ok(""));
    }
}
