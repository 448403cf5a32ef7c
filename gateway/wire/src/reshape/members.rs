//! The members of one `delta` or `message` as the client gets them.

use super::choice::Choice;
use super::patch::{self, Patch};
use super::{FieldName, Plan, Shown, text_of};
use crate::chunk::{ChoicePlaces, Member};

impl FieldName {
    /// Whether reasoning goes out under `reasoning_content`, and under `reasoning`.
    const fn names(self) -> [(&'static str, bool); 2] {
        let (long, short) = match self {
            Self::ReasoningContent => (true, false),
            Self::Reasoning => (false, true),
            Self::Both => (true, true),
        };
        [("reasoning_content", long), ("reasoning", short)]
    }
}

/// Appends the members that carry these texts; empty reasoning has none, nor has content that is `None`.
pub(super) fn write(out: &mut Vec<u8>, field: FieldName, reasoning: &str, content: Option<&str>) {
    let names = field.names().into_iter();
    let wanted = names.filter(|(_, wanted)| *wanted && !reasoning.is_empty());
    let mut comma = false;
    for (name, text) in wanted
        .map(|(name, _)| (name, reasoning))
        .chain(content.map(|text| ("content", text)))
    {
        if std::mem::replace(&mut comma, true) {
            out.push(b',');
        }
        patch::member(out, name, text);
    }
}

/// Notes what changes in the message of one choice, `text` being what its content said. Whether anything of it is left for the client.
pub(super) fn patch(
    plan: &Plan,
    choice: &mut Choice,
    place: &ChoicePlaces,
    data: &[u8],
    text: Option<&str>,
    whole: bool,
    patch: &mut Patch,
) -> bool {
    let fields = [&place.reasoning_content, &place.reasoning];
    let engine = fields.into_iter().flatten().find(|member| member.text);
    let shown = plan.shown == Shown::Field;
    match engine {
        Some(member) if shown && choice.reasoning.text.is_empty() => {
            rename(plan.field, place, member, data, patch);
        }
        Some(member) if shown => {
            let raw = data.get(member.value.clone()).unwrap_or_default();
            let more = text_of(raw).unwrap_or_default();
            choice.reasoning.text.push_str(&more);
        }
        _ => {}
    }
    if engine.is_none() || !shown || !choice.reasoning.text.is_empty() {
        set(plan.field, choice, place, text, whole, patch);
    } else {
        set_content(choice, place, text, whole, patch);
    }
    if !shown {
        for span in &place.traces {
            patch.null(span.clone());
        }
        for span in place.spelled.iter().filter(|_| choice.mixed) {
            patch.null(span.clone());
        }
    }
    if let Some(reason) = &place.finish_reason
        && choice.tools
        && data.get(reason.clone()) == Some(b"\"stop\"")
    {
        patch.replace(reason.clone(), |out| {
            out.extend_from_slice(b"\"tool_calls\"")
        });
    }
    if let Some(role) = place.role.as_ref().filter(|_| choice.resumed) {
        patch.null(role.clone());
    }
    let had = engine.is_some() || text.is_some_and(|text| !text.is_empty());
    let silent = choice.resumed && !had;
    (!had && !silent)
        || place.rest
        || (place.role.is_some() && !choice.resumed)
        || place.tool_calls.is_some()
        || place.finish_reason.is_some()
        || !choice.content.text.is_empty()
        || !choice.reasoning.text.is_empty()
        || (engine.is_some() && shown)
}

/// The replica's own reasoning, which stands in `from`, under the names that the client reads: its bytes are copied as they are.
fn rename(field: FieldName, place: &ChoicePlaces, from: &Member, data: &[u8], patch: &mut Patch) {
    let raw = data.get(from.value.clone()).unwrap_or_default();
    let there = [&place.reasoning_content, &place.reasoning];
    let mut missing = None;
    for ((name, wanted), member) in field.names().into_iter().zip(there) {
        match member {
            Some(member) if wanted && !member.text => {
                patch.replace(member.value.clone(), |out| out.extend_from_slice(raw));
            }
            None if wanted => missing = Some(name),
            _ => {}
        }
    }
    let unwanted = field
        .names()
        .into_iter()
        .zip(there)
        .filter(|((_, wanted), member)| !wanted && member.as_ref().is_some_and(|m| m.text))
        .find_map(|(_, member)| member.as_ref());
    match (missing, unwanted) {
        (Some(name), Some(old)) => patch.replace(old.span(), |out| named(out, name, raw)),
        (Some(name), None) => patch.replace(from.start..from.start, |out| {
            named(out, name, raw);
            out.push(b',');
        }),
        (None, Some(old)) => patch.null(old.value.clone()),
        (None, None) => {}
    }
}

fn named(out: &mut Vec<u8>, name: &str, raw: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(raw);
}

/// Both fields, from what the choice has for this event.
fn set(
    field: FieldName,
    choice: &Choice,
    place: &ChoicePlaces,
    text: Option<&str>,
    whole: bool,
    patch: &mut Patch,
) {
    let reasoning = &*choice.reasoning.text;
    let there = [&place.reasoning_content, &place.reasoning];
    let mut missing = Vec::new();
    for ((name, wanted), member) in field.names().into_iter().zip(there) {
        let wanted = wanted && !reasoning.is_empty();
        match member {
            Some(member) if wanted => {
                patch.replace(member.value.clone(), |out| patch::string(out, reasoning));
            }
            Some(member) if member.text => patch.null(member.value.clone()),
            None if wanted => missing.push(name),
            _ => {}
        }
    }
    if missing.is_empty() {
        return set_content(choice, place, text, whole, patch);
    }
    let content = &*choice.content.text;
    let write = |out: &mut Vec<u8>| {
        for (at, name) in missing.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            patch::member(out, name, reasoning);
        }
    };
    match (&place.content, &place.message) {
        (Some(member), _) if is_same(content, text, whole) => {
            patch.replace(member.start..member.start, |out| {
                write(out);
                out.push(b',');
            });
        }
        (Some(member), _) => patch.replace(member.span(), |out| {
            write(out);
            if !content.is_empty() {
                out.push(b',');
                patch::member(out, "content", content);
            } else if whole {
                out.extend_from_slice(b",\"content\":null");
            }
        }),
        (None, Some(message)) => {
            let inside = message.span.start + 1;
            patch.replace(inside..inside, |out| {
                write(out);
                if !content.is_empty() {
                    out.push(b',');
                    patch::member(out, "content", content);
                }
                if message.has_fields {
                    out.push(b',');
                }
            });
        }
        (None, None) => {}
    }
}

/// The content alone.
fn set_content(
    choice: &Choice,
    place: &ChoicePlaces,
    text: Option<&str>,
    whole: bool,
    patch: &mut Patch,
) {
    let content = &*choice.content.text;
    if is_same(content, text, whole) {
        return;
    }
    match (&place.content, &place.message) {
        (Some(member), _) if content.is_empty() => patch.null(member.value.clone()),
        (Some(member), _) => {
            patch.replace(member.value.clone(), |out| patch::string(out, content));
        }
        (None, Some(message)) => {
            let inside = message.span.start + 1;
            patch.replace(inside..inside, |out| {
                patch::member(out, "content", content);
                if message.has_fields {
                    out.push(b',');
                }
            });
        }
        (None, None) => {}
    }
}

/// Whether the content goes out as it came. In a whole answer no text is null.
fn is_same(content: &str, text: Option<&str>, whole: bool) -> bool {
    text.unwrap_or_default() == content && !(whole && text == Some(""))
}
