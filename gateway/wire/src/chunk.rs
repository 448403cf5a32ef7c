//! A light look at one chunk of a stream, or at a whole answer: what an observer must know, without building the rest.
//!
//! Only real fields count: text such as `"usage"` or `[DONE]` inside a content is passed over as the string that it is.

mod places;

use std::ops::Range;

pub use places::Places;
pub(crate) use places::{ChoicePlaces, Member, ObjectPlace};

use crate::json::ScanError;
use crate::json::cursor::Cursor;
use crate::json::text::RawText;
use crate::scan::whole_number;

/// What one `chat.completion.chunk`, `chat.completion` or `text_completion` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkScan {
    /// The value of `error` where it is not null, or the whole object where it calls itself an error (`"object":"error"`).
    pub error: Option<Range<usize>>,
    /// Number of elements of `choices`; `None` where the field is missing.
    pub choices: Option<u32>,
    /// `index` of the last choice.
    pub index: Option<u64>,
    /// `finish_reason` of the last choice that has one.
    pub finish_reason: Option<FinishReason>,
    /// Number of choices that have a finish reason.
    pub finished: u32,
    /// Whether any choice carries text for the user.
    pub content: bool,
    /// Whether any choice carries reasoning, under either of its two names.
    pub reasoning: bool,
    /// Whether any choice carries tool calls or pieces of them.
    pub tool_calls: bool,
    /// `usage` where it is an object.
    pub usage: Option<UsageScan>,
}

impl ChunkScan {
    /// Whether the model has produced something here: the mark by which time to first token is taken.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        self.content || self.reasoning || self.tool_calls
    }

    /// Whether this is the extra chunk that `stream_options.include_usage` asks for.
    #[must_use]
    pub fn is_usage_only(&self) -> bool {
        self.usage.is_some() && self.choices.unwrap_or(0) == 0 && self.error.is_none()
    }
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// A stop token or stop string.
    Stop,
    /// The token limit.
    Length,
    /// The model wants tools called.
    ToolCalls,
    /// A filter stopped it.
    ContentFilter,
    /// Any other word.
    Other,
}

impl FinishReason {
    /// The word for a metric's label; one of a fixed set.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Other => "other",
        }
    }
}

/// Token counts as a replica reported them; a missing count is 0 where it says so and `None` where absence means something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageScan {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens generated.
    pub completion_tokens: u64,
    /// The sum as reported, else the sum.
    pub total_tokens: u64,
    /// `prompt_tokens_details.cached_tokens`; `None` where the replica does not say.
    pub cached_tokens: Option<u64>,
    /// `completion_tokens_details.reasoning_tokens`; `None` where the replica does not say.
    pub reasoning_tokens: Option<u64>,
}

/// Scans the data of one event, or the body of one answer.
///
/// # Errors
/// The first byte that is not JSON. A field of an unexpected type is no error: it counts as missing.
pub fn scan(data: &[u8]) -> Result<ChunkScan, ScanError> {
    scan_placed(data, &mut Places::default())
}

/// [`scan`], with the places of what may be changed.
///
/// # Errors
/// As [`scan`].
pub fn scan_placed(data: &[u8], places: &mut Places) -> Result<ChunkScan, ScanError> {
    places.clear();
    let mut seen = ChunkScan::default();
    let mut cursor = Cursor::new(data);
    let mut names_itself_error = false;
    cursor.object(|c, key| {
        match &*key.name() {
            b"choices" if c.peek() == Some(b'[') => {
                let (mut count, start) = (0u32, c.at());
                c.array(|c| {
                    count = count.saturating_add(1);
                    let mut place = ChoicePlaces::default();
                    fields(c, |c, key| choice(c, key, &mut seen, &mut place))?;
                    places.each.push(place);
                    Ok(())
                })?;
                seen.choices = Some(count);
                places.choices = Some(start..c.at());
            }
            b"usage" if c.peek() == Some(b'{') => seen.usage = Some(usage(c, places)?),
            b"error" if c.peek() != Some(b'n') => seen.error = Some(c.value()?),
            b"id" if c.peek() == Some(b'"') => places.id = Some(c.value()?),
            b"object" if c.peek() == Some(b'"') => {
                names_itself_error = &*c.string()?.name() == b"error";
            }
            _ => c.skip_value()?,
        }
        Ok(())
    })?;
    cursor.end()?;
    if names_itself_error && seen.error.is_none() {
        seen.error = Some(0..data.len());
    }
    Ok(seen)
}

/// Walks an object, or passes a value that is none.
fn fields<'a>(
    c: &mut Cursor<'a>,
    field: impl FnMut(&mut Cursor<'a>, RawText<'a>) -> Result<(), ScanError>,
) -> Result<(), ScanError> {
    if c.peek() == Some(b'{') {
        c.object(field)
    } else {
        c.skip_value()
    }
}

fn choice(
    c: &mut Cursor<'_>,
    key: RawText<'_>,
    seen: &mut ChunkScan,
    place: &mut ChoicePlaces,
) -> Result<(), ScanError> {
    match &*key.name() {
        b"delta" | b"message" => {
            c.peek();
            let (start, mut has_fields) = (c.at(), false);
            let is_object = c.peek() == Some(b'{');
            fields(c, |c, key| {
                has_fields = true;
                message(c, key, seen, place)
            })?;
            place.message = is_object.then(|| ObjectPlace {
                span: start..c.at(),
                has_fields,
            });
            Ok(())
        }
        // The older `/v1/completions` has its text here.
        b"text" => {
            seen.content |= is_filled(c)?;
            Ok(())
        }
        b"index" => {
            place.index = whole_number(c)?;
            seen.index = place.index;
            Ok(())
        }
        b"finish_reason" if c.peek() == Some(b'"') => {
            let start = c.at();
            seen.finish_reason = Some(match &*c.string()?.name() {
                b"stop" => FinishReason::Stop,
                b"length" => FinishReason::Length,
                b"tool_calls" | b"function_call" => FinishReason::ToolCalls,
                b"content_filter" => FinishReason::ContentFilter,
                _ => FinishReason::Other,
            });
            seen.finished = seen.finished.saturating_add(1);
            place.finish_reason = Some(start..c.at());
            Ok(())
        }
        b"logprobs" | b"token_ids" if c.peek() != Some(b'n') => {
            place.spelled.push(c.value()?);
            Ok(())
        }
        _ => c.skip_value(),
    }
}

/// A field of a choice's `delta` or `message`.
fn message(
    c: &mut Cursor<'_>,
    key: RawText<'_>,
    seen: &mut ChunkScan,
    place: &mut ChoicePlaces,
) -> Result<(), ScanError> {
    match &*key.name() {
        b"content" => {
            let (member, filled) = member(c, key)?;
            seen.content |= filled;
            place.content = Some(member);
        }
        b"reasoning_content" => {
            let (member, filled) = member(c, key)?;
            seen.reasoning |= filled;
            place.reasoning_content = Some(member);
        }
        b"reasoning" => {
            let (member, filled) = member(c, key)?;
            seen.reasoning |= filled;
            place.reasoning = Some(member);
        }
        b"tool_calls" | b"function_call" => {
            let (member, filled) = member(c, key)?;
            seen.tool_calls |= filled;
            if filled {
                place.tool_calls = Some(member.value);
            }
        }
        b"role" if c.peek() == Some(b'"') => place.role = Some(c.value()?),
        b"thinking" | b"thinking_blocks" | b"reasoning_details" if c.peek() != Some(b'n') => {
            place.traces.push(c.value()?);
        }
        _ => {
            place.rest |= c.peek() != Some(b'n');
            c.skip_value()?;
        }
    }
    Ok(())
}

/// A member whose key has been passed, and whether its value is a string, array or object with something in it.
fn member(c: &mut Cursor<'_>, key: RawText<'_>) -> Result<(Member, bool), ScanError> {
    let string = c.peek() == Some(b'"');
    let start = c.at();
    let filled = is_filled(c)?;
    let member = Member {
        start: key.offset - 1,
        value: start..c.at(),
        text: string && filled,
        string,
    };
    Ok((member, filled))
}

/// Passes a value; whether it is a string, array or object with something in it.
fn is_filled(c: &mut Cursor<'_>) -> Result<bool, ScanError> {
    match c.peek() {
        Some(b'"') => Ok(!c.string()?.raw.is_empty()),
        Some(open @ (b'[' | b'{')) => {
            let mut inside = c.again(c.at() + 1);
            let close = if open == b'[' { b']' } else { b'}' };
            let filled = inside.peek() != Some(close);
            c.skip_value()?;
            Ok(filled)
        }
        _ => c.skip_value().map(|()| false),
    }
}

fn usage(c: &mut Cursor<'_>, places: &mut Places) -> Result<UsageScan, ScanError> {
    let mut seen = UsageScan::default();
    let mut total = None;
    let (start, mut has_fields) = (c.at(), false);
    c.object(|c, key| {
        has_fields = true;
        match &*key.name() {
            b"prompt_tokens" => seen.prompt_tokens = whole_number(c)?.unwrap_or(0),
            b"completion_tokens" => seen.completion_tokens = whole_number(c)?.unwrap_or(0),
            b"total_tokens" => total = whole_number(c)?,
            b"prompt_tokens_details" => fields(c, |c, key| {
                if &*key.name() == b"cached_tokens" {
                    seen.cached_tokens = whole_number(c)?;
                    return Ok(());
                }
                c.skip_value()
            })?,
            b"completion_tokens_details" => seen.reasoning_tokens = details(c, places)?,
            _ => c.skip_value()?,
        }
        Ok(())
    })?;
    places.usage = Some(ObjectPlace {
        span: start..c.at(),
        has_fields,
    });
    let sum = seen.prompt_tokens.saturating_add(seen.completion_tokens);
    seen.total_tokens = total.unwrap_or(sum);
    Ok(seen)
}

/// `completion_tokens_details`: its `reasoning_tokens`.
fn details(c: &mut Cursor<'_>, places: &mut Places) -> Result<Option<u64>, ScanError> {
    if c.peek() != Some(b'{') {
        places.no_details = Some(c.value()?);
        return Ok(None);
    }
    let (start, mut has_fields, mut tokens) = (c.at(), false, None);
    c.object(|c, key| {
        has_fields = true;
        if &*key.name() != b"reasoning_tokens" {
            return c.skip_value();
        }
        c.peek();
        let start = c.at();
        tokens = whole_number(c)?;
        places.reasoning_tokens = Some(start..c.at());
        Ok(())
    })?;
    places.details = Some(ObjectPlace {
        span: start..c.at(),
        has_fields,
    });
    Ok(tokens)
}

#[cfg(test)]
mod tests;
