//! Keeps control tokens out of clients' strings.
//!
//! A template mixes its own control tokens with strings from outside, and the text that comes out no longer says
//! which is which. So before rendering, a mark goes in front of every control token's text inside a client's string;
//! after rendering the marks come out again and their places are kept: no control token may begin there. The mark
//! is a Unicode noncharacter, which no template looks for and white-space trimming leaves alone. A conversation with no
//! control token's text in it is not touched at all.

use serde_json::{Map, Value};

use super::{Rendered, TemplateError};

/// Noncharacters: valid in a string, never assigned, "for internal use" by the Unicode standard.
const MARKS: std::ops::RangeInclusive<char> = '\u{FDD0}'..='\u{FDEF}';

/// Everything of a conversation that comes from outside.
pub(super) struct Strings<'a> {
    pub(super) messages: &'a mut Vec<Value>,
    pub(super) tools: &'a mut Vec<Value>,
    pub(super) kwargs: &'a mut Map<String, Value>,
}

impl Strings<'_> {
    /// Marks every control token's text; gives the mark used, `None` if there was nothing to mark.
    pub(super) fn mark(&mut self, control_texts: &[String]) -> Result<Option<char>, TemplateError> {
        if !self.any(&|text| {
            control_texts
                .iter()
                .any(|control| text.contains(control.as_str()))
        }) {
            return Ok(None);
        }
        let unused = MARKS
            .into_iter()
            .find(|&mark| !self.any(&|text| text.contains(mark)));
        let Some(mark) = unused else {
            return Err(TemplateError::Message(
                "the messages hold a model's control tokens and all of Unicode's noncharacters U+FDD0 to U+FDEF; \
                 leave one of those out"
                    .to_owned(),
            ));
        };
        for value in self.messages.iter_mut().chain(self.tools.iter_mut()) {
            mark_value(value, control_texts, mark);
        }
        for value in self.kwargs.values_mut() {
            mark_value(value, control_texts, mark);
        }
        Ok(Some(mark))
    }

    fn any(&self, test: &dyn Fn(&str) -> bool) -> bool {
        self.messages
            .iter()
            .chain(self.tools.iter())
            .chain(self.kwargs.values())
            .any(|value| any(value, test))
    }
}

fn any(value: &Value, test: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => test(text),
        Value::Array(values) => values.iter().any(|value| any(value, test)),
        Value::Object(map) => map.iter().any(|(key, value)| test(key) || any(value, test)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn mark_value(value: &mut Value, control_texts: &[String], mark: char) {
    match value {
        Value::String(text) => *text = mark_text(text, control_texts, mark),
        Value::Array(values) => {
            for value in values {
                mark_value(value, control_texts, mark);
            }
        }
        Value::Object(map) => {
            *map = std::mem::take(map)
                .into_iter()
                .map(|(key, mut value)| {
                    mark_value(&mut value, control_texts, mark);
                    (mark_text(&key, control_texts, mark), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn mark_text(text: &str, control_texts: &[String], mark: char) -> String {
    let mut marked = String::with_capacity(text.len() + mark.len_utf8());
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        if control_texts
            .iter()
            .any(|control| rest.starts_with(control.as_str()))
        {
            marked.push(mark);
        }
        marked.push(c);
    }
    marked
}

/// Takes the marks out and keeps their places.
pub(super) fn unmark(text: String, mark: Option<char>) -> Rendered {
    let Some(mark) = mark else {
        return Rendered {
            text,
            breaks: Vec::new(),
        };
    };
    let mut clean = String::with_capacity(text.len());
    let mut breaks = Vec::new();
    for (index, piece) in text.split(mark).enumerate() {
        if index > 0 {
            breaks.push(clean.len());
        }
        clean.push_str(piece);
    }
    breaks.dedup();
    Rendered {
        text: clean,
        breaks,
    }
}
