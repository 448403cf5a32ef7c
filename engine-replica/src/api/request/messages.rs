//! The conversation: checked, and brought into the one shape that chat templates are written for.
//!
//! Text parts are joined with a newline, `developer` becomes `system`, and absent content becomes the empty string, so
//! that a template never sees a type it was not made for.

use chat_wire::limits::MESSAGES_MAX;
use serde_json::{Map, Value};

use super::nearest::nearest;
use super::reader::{Problems, Reader};
use crate::failure::ProblemCode;

/// Most tool calls in one message.
const TOOL_CALLS_MAX: usize = 256;
/// Longest `name` or `tool_call_id`, in bytes.
const NAME_BYTES_MAX: usize = 256;

const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool"];

/// Fields that a message may have; those in the second list must be null, false or empty.
const FIELDS: &[&str] = &[
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "reasoning",
    "reasoning_content",
];
const FIELDS_EMPTY: &[&str] = &["refusal", "audio", "function_call", "annotations", "prefix"];

/// Reads `messages`; what is wrong with any of them goes to `problems`.
pub(super) fn read(value: Option<&Value>, problems: &mut Problems) -> Vec<Value> {
    let expected = "an array of at least one message";
    let messages = match value {
        None | Some(Value::Null) => {
            problems.missing("messages", expected);
            return Vec::new();
        }
        Some(Value::Array(messages)) if messages.len() > MESSAGES_MAX => {
            let message = format!(
                "`messages` has {} entries, expected at most {MESSAGES_MAX}",
                messages.len()
            );
            problems.push("messages".to_owned(), ProblemCode::InvalidValue, message);
            return Vec::new();
        }
        Some(Value::Array(messages)) if !messages.is_empty() => messages,
        Some(other) => {
            problems.invalid("messages", other, expected);
            return Vec::new();
        }
    };
    messages
        .iter()
        .enumerate()
        .filter_map(|(i, message)| {
            let at = format!("messages[{i}]");
            match message {
                Value::Object(fields) => read_one(Reader::new(fields, at, problems), fields),
                other => {
                    problems.invalid(&at, other, "an object with `role` and `content`");
                    None
                }
            }
        })
        .collect()
}

fn read_one(mut reader: Reader<'_>, fields: &Map<String, Value>) -> Option<Value> {
    check_fields(&mut reader, fields);
    let role = read_role(&mut reader)?;
    let mut message = Map::new();
    // Templates written before the `developer` role refuse it or skip it; to a model it is a system message.
    let shown = if role == "developer" { "system" } else { role };
    message.insert("role".to_owned(), shown.into());
    let has_calls = read_tool_calls(&mut reader, role, &mut message);
    let content = read_content(&mut reader, role, has_calls);
    message.insert("content".to_owned(), content.into());
    for name in ["name", "tool_call_id"] {
        if let Some(text) = reader.string(name, NAME_BYTES_MAX) {
            message.insert(name.to_owned(), text.into());
        }
    }
    // Clients send either name; templates read one or the other, so they get both.
    let thought = reader.string("reasoning_content", usize::MAX);
    let thought = thought.or(reader.string("reasoning", usize::MAX));
    if let Some(text) = thought {
        message.insert("reasoning_content".to_owned(), text.into());
        message.insert("reasoning".to_owned(), text.into());
    }
    Some(Value::Object(message))
}

fn check_fields(reader: &mut Reader<'_>, fields: &Map<String, Value>) {
    for (name, value) in fields {
        let path = reader.path(name);
        if FIELDS.contains(&name.as_str()) {
            continue;
        }
        if FIELDS_EMPTY.contains(&name.as_str()) {
            if !is_empty(value) {
                reader
                    .problems
                    .unsupported(&path, value, "not there yet; leave it out");
            }
            continue;
        }
        let known = FIELDS.iter().chain(FIELDS_EMPTY).copied();
        let hint = nearest(name, known).map_or("leave it out".to_owned(), |near| {
            format!("did you mean `{near}`?")
        });
        let message = format!("unknown field `{path}`; {hint}");
        reader
            .problems
            .push(path, ProblemCode::UnknownParameter, message);
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn read_role<'a>(reader: &mut Reader<'a>) -> Option<&'a str> {
    let expected = "one of `system`, `developer`, `user`, `assistant`, `tool`";
    let Some(value) = reader.value("role") else {
        let path = reader.path("role");
        reader.problems.missing(&path, expected);
        return None;
    };
    let role = value.as_str().filter(|role| ROLES.contains(role));
    if role.is_none() {
        reader.invalid("role", expected);
    }
    role
}

/// The text of a message, its parts joined.
fn read_content(reader: &mut Reader<'_>, role: &str, has_calls: bool) -> String {
    let path = reader.path("content");
    match reader.value("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts
                .iter()
                .enumerate()
                .filter_map(|(i, part)| read_part(&format!("{path}[{i}]"), part, reader.problems))
                .collect();
            texts.join("\n")
        }
        Some(_) => {
            reader.invalid("content", "a string or an array of text parts");
            String::new()
        }
        None if has_calls || role == "assistant" => String::new(),
        None => {
            reader
                .problems
                .missing(&path, "a string or an array of text parts");
            String::new()
        }
    }
}

fn read_part<'a>(path: &str, part: &'a Value, problems: &mut Problems) -> Option<&'a str> {
    let Some(fields) = part.as_object() else {
        problems.invalid(path, part, "an object with `type` and `text`");
        return None;
    };
    match fields.get("type").and_then(Value::as_str) {
        Some("text") => {
            let text = fields.get("text").and_then(Value::as_str);
            if text.is_none() {
                problems.missing(&format!("{path}.text"), "a string");
            }
            text
        }
        Some(other) => {
            let message =
                format!("`{path}` is a part of type `{other}`: this model reads text only");
            problems.push(path.to_owned(), ProblemCode::Unsupported, message);
            None
        }
        None => {
            problems.missing(&format!("{path}.type"), "`text`");
            None
        }
    }
}

/// Copies an assistant's earlier tool calls for the template; says whether there are any.
fn read_tool_calls(reader: &mut Reader<'_>, role: &str, out: &mut Map<String, Value>) -> bool {
    let Some(value) = reader.value("tool_calls") else {
        return false;
    };
    let expected = format!("an array of at most {TOOL_CALLS_MAX} calls in an assistant message");
    let calls = match value.as_array() {
        Some(calls) if calls.is_empty() => return false,
        Some(calls) if role == "assistant" && calls.len() <= TOOL_CALLS_MAX => calls,
        _ => {
            reader.invalid("tool_calls", &expected);
            return false;
        }
    };
    for (i, call) in calls.iter().enumerate() {
        let path = format!("{}[{i}]", reader.path("tool_calls"));
        let function = call.get("function");
        let text = |name| function.and_then(|f| f.get(name)).and_then(Value::as_str);
        if text("name").is_none() || text("arguments").is_none() {
            reader.problems.invalid(
                &path,
                call,
                "an object whose `function` has `name` and `arguments`, both strings",
            );
        }
    }
    out.insert("tool_calls".to_owned(), value.clone());
    true
}
