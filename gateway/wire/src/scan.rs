//! One borrowed pass over a chat request: the few things that routing needs, each with its place, and a check
//! of every byte on the way. Nothing else is read, kept or judged: a field that the gateway does not know
//! travels to the replica as the client wrote it.
//!
//! A top-level field that decides something (`model`, `messages`, `stream`, …, and every wanted path) may stand
//! only once: JSON readers disagree about which of two counts, so the gateway would sooner refuse than guess.

mod thinking;

use std::ops::Range;

use crate::json::cursor::Cursor;
use crate::json::text::RawText;
use crate::json::{JsonPath, ScanError, ScanProblem};
use crate::limits::{MESSAGES_MAX, WANTED_PATHS_MAX};
use crate::role::Role;
pub use thinking::{BudgetScan, ThinkingScan};
pub(crate) use thinking::{Slot, Switch as Says};

/// What one chat request says, as far as routing needs it. All spans are byte ranges in the scanned body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatScan {
    /// `model`, escapes resolved; `None` where missing or null.
    pub model: Option<String>,
    /// `stream`; false where missing or null.
    pub stream: bool,
    /// The elements of `messages` in order; empty where the field is missing.
    pub messages: Vec<MessageScan>,
    /// The value of `tools`, brackets included; `None` where missing or null.
    pub tools: Option<Range<usize>>,
    /// `stream_options`, where the field stands in the body at all.
    pub stream_options: Option<StreamOptionsScan>,
    /// `cache_salt`: requests of different salts share no prefix.
    pub cache_salt: Option<String>,
    /// `max_completion_tokens`, else `max_tokens`, in tokens; `None` where missing or not a whole number ≥ 0.
    pub max_tokens: Option<u64>,
    /// The values of both fields, where they stand.
    pub(crate) max_tokens_at: Vec<Range<usize>>,
    /// The value of `stream`, where the field is there.
    pub stream_at: Option<Range<usize>>,
    /// Whether the log probabilities of tokens are asked for.
    pub logprobs: bool,
    /// `n`, the number of answers asked for; `None` where missing or not a whole number ≥ 0.
    pub n: Option<u64>,
    /// For each wanted path, in the same order: the string that lies there. A value of another kind counts as missing.
    pub strings: Vec<Option<String>>,
    /// What it says about thinking.
    pub thinking: ThinkingScan,
    /// Offset of the brace that closes the request: a new field goes in front of it.
    pub close: usize,
    /// Whether the request has any field, so that a new one needs a comma in front.
    pub has_fields: bool,
}

/// One element of `messages`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageScan {
    /// Who speaks.
    pub role: Role,
    /// The element, braces included.
    pub span: Range<usize>,
    /// Whether it brings reasoning along, under either of its two names.
    pub reasons: bool,
}

/// The field `stream_options`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOptionsScan {
    /// Its value, braces included.
    pub span: Range<usize>,
    /// Whether the value is an object (else it is null).
    pub is_object: bool,
    /// Whether that object has any member.
    pub has_fields: bool,
    /// The value of its `include_usage`, whatever it is.
    pub include_usage_span: Option<Range<usize>>,
    /// `include_usage` where it is a boolean.
    pub include_usage: Option<bool>,
}

/// Scans one chat request. `wanted` names strings to pick out by path; paths past [`WANTED_PATHS_MAX`] are not looked for.
///
/// # Errors
/// The first byte that is not JSON (RFC 8259) or not UTF-8, a field of the wrong type, a repeated field, or a bound of
/// [`crate::limits`] that was passed.
pub fn chat(body: &[u8], wanted: &[JsonPath]) -> Result<ChatScan, ScanError> {
    if let Err(e) = std::str::from_utf8(body) {
        return Err(ScanError::new(e.valid_up_to(), ScanProblem::NotUtf8));
    }
    let wanted = &wanted[..wanted.len().min(WANTED_PATHS_MAX)];
    let mut reader = Reader {
        scan: ChatScan {
            strings: vec![None; wanted.len()],
            ..ChatScan::default()
        },
        wanted,
        seen: 0,
        max_tokens_old: None,
    };
    let mut cursor = Cursor::new(body);
    cursor.object(|c, key| reader.field(c, key))?;
    let mut scan = reader.scan;
    scan.close = cursor.at() - 1;
    scan.max_tokens = scan.max_tokens.or(reader.max_tokens_old);
    cursor.end()?;
    Ok(scan)
}

struct Reader<'w> {
    scan: ChatScan,
    wanted: &'w [JsonPath],
    /// One bit per field of `FIELDS` that has been met.
    seen: u32,
    max_tokens_old: Option<u64>,
}

/// The top-level fields that the scan reads itself.
const FIELDS: [&str; 10] = [
    "model",
    "messages",
    "stream",
    "tools",
    "stream_options",
    "cache_salt",
    "max_completion_tokens",
    "max_tokens",
    "logprobs",
    "n",
];

impl Reader<'_> {
    fn field(&mut self, c: &mut Cursor<'_>, key: RawText<'_>) -> Result<(), ScanError> {
        self.scan.has_fields = true;
        let name = key.name();
        let paths = self.paths_below(u64::MAX, 0, &name);
        c.peek();
        let start = c.at();
        match FIELDS.iter().position(|field| field.as_bytes() == &*name) {
            Some(index) => {
                let field = FIELDS[index];
                if self.seen & (1 << index) != 0 {
                    return Err(ScanError::new(key.offset, ScanProblem::Duplicate).in_field(field));
                }
                self.seen |= 1 << index;
                self.known(c, field).map_err(|e| e.in_field(field))?;
                if paths != 0 {
                    self.pick(&mut c.again(start), paths, 1)?;
                }
                Ok(())
            }
            None => {
                let thinking = thinking::FIELDS;
                let Some(index) = thinking.iter().position(|field| field.as_bytes() == &*name)
                else {
                    return match paths {
                        0 => c.skip_value(),
                        _ => self.pick(c, paths, 1),
                    };
                };
                let (bit, field) = (FIELDS.len() + index, thinking[index]);
                if self.seen & (1 << bit) != 0 {
                    return Err(ScanError::new(key.offset, ScanProblem::Duplicate).in_field(field));
                }
                self.seen |= 1 << bit;
                self.scan.thinking.field(c, field, key.offset - 1)?;
                if paths != 0 {
                    self.pick(&mut c.again(start), paths, 1)?;
                }
                Ok(())
            }
        }
    }

    fn known(&mut self, c: &mut Cursor<'_>, field: &'static str) -> Result<(), ScanError> {
        match field {
            "model" => self.scan.model = text_or_null(c)?,
            "messages" => self.messages(c)?,
            "stream" => {
                self.scan.stream = match c.peek() {
                    Some(b't' | b'f' | b'n') => {
                        let span = c.value()?;
                        self.scan.stream_at = Some(span.clone());
                        // The value has been checked; its first letter tells which of the three it is.
                        c.again(span.start).peek() == Some(b't')
                    }
                    _ => return Err(c.expected("`true` or `false`")),
                }
            }
            "tools" => {
                let null = c.peek() == Some(b'n');
                let span = c.value()?;
                self.scan.tools = (!null).then_some(span);
            }
            "stream_options" => self.scan.stream_options = Some(stream_options(c)?),
            "cache_salt" => self.scan.cache_salt = text_or_null(c)?,
            "max_completion_tokens" => self.scan.max_tokens = self.limit(c)?,
            "max_tokens" => self.max_tokens_old = self.limit(c)?,
            "logprobs" => {
                self.scan.logprobs = !matches!(c.peek(), Some(b'f' | b'n'));
                c.skip_value()?;
            }
            _ => self.scan.n = whole_number(c)?,
        }
        Ok(())
    }

    /// A limit of tokens, whose place is kept.
    fn limit(&mut self, c: &mut Cursor<'_>) -> Result<Option<u64>, ScanError> {
        c.peek();
        let start = c.at();
        let limit = whole_number(c)?;
        self.scan.max_tokens_at.push(start..c.at());
        Ok(limit)
    }

    fn messages(&mut self, c: &mut Cursor<'_>) -> Result<(), ScanError> {
        if c.peek() != Some(b'[') {
            return Err(c.expected("an array of messages"));
        }
        let messages = &mut self.scan.messages;
        c.array(|c| {
            if c.peek() != Some(b'{') {
                return Err(c.expected("a message object"));
            }
            if messages.len() == MESSAGES_MAX {
                return Err(ScanError::new(c.at(), ScanProblem::TooMany(MESSAGES_MAX)));
            }
            let start = c.at();
            let (mut role, mut reasons) = (Role::Other, false);
            c.object(|c, key| {
                reasons |= matches!(key.raw, b"reasoning_content" | b"reasoning");
                if &*key.name() == b"role" && c.peek() == Some(b'"') {
                    role = Role::from_wire(&c.string()?.name());
                    return Ok(());
                }
                c.skip_value()
            })?;
            messages.push(MessageScan {
                role,
                span: start..c.at(),
                reasons,
            });
            Ok(())
        })
    }

    /// The paths of `among` whose name at `level` is `name`, one bit each.
    fn paths_below(&self, among: u64, level: usize, name: &[u8]) -> u64 {
        let mut paths = 0;
        for (index, path) in self.wanted.iter().enumerate() {
            if path.name(level).is_some_and(|n| n.as_bytes() == name) {
                paths |= 1 << index;
            }
        }
        paths & among
    }

    /// Reads the value to which the first `level` names of each path in `paths` lead.
    fn pick(&mut self, c: &mut Cursor<'_>, paths: u64, level: usize) -> Result<(), ScanError> {
        match c.peek() {
            Some(b'"') => {
                let text = c.string()?;
                for index in 0..self.wanted.len() {
                    if paths & (1 << index) == 0 || self.wanted[index].depth() != level {
                        continue;
                    }
                    if self.scan.strings[index].is_some() {
                        return Err(ScanError::new(text.offset, ScanProblem::Duplicate));
                    }
                    self.scan.strings[index] = Some(text.to_text()?);
                }
                Ok(())
            }
            Some(b'{') => c.object(|c, key| {
                let below = self.paths_below(paths, level, &key.name());
                if below == 0 {
                    c.skip_value()
                } else {
                    self.pick(c, below, level + 1)
                }
            }),
            _ => c.skip_value(),
        }
    }
}

fn text_or_null(c: &mut Cursor<'_>) -> Result<Option<String>, ScanError> {
    match c.peek() {
        Some(b'"') => Ok(Some(c.string()?.to_text()?)),
        Some(b'n') => c.skip_value().map(|()| None),
        _ => Err(c.expected("a string")),
    }
}

/// A whole number ≥ 0. Anything else is `None`, for the replica to judge.
pub(crate) fn whole_number(c: &mut Cursor<'_>) -> Result<Option<u64>, ScanError> {
    let span = c.value()?;
    Ok(c.slice(span).and_then(|digits| digits.parse().ok()))
}

fn stream_options(c: &mut Cursor<'_>) -> Result<StreamOptionsScan, ScanError> {
    let mut options = StreamOptionsScan {
        span: 0..0,
        is_object: false,
        has_fields: false,
        include_usage_span: None,
        include_usage: None,
    };
    c.peek();
    let start = c.at();
    match c.peek() {
        Some(b'{') => {
            options.is_object = true;
            c.object(|c, key| {
                options.has_fields = true;
                let span = c.value()?;
                if &*key.name() == b"include_usage" {
                    if options.include_usage_span.is_some() {
                        return Err(ScanError::new(key.offset, ScanProblem::Duplicate));
                    }
                    options.include_usage = c.slice(span.clone()).and_then(|v| v.parse().ok());
                    options.include_usage_span = Some(span);
                }
                Ok(())
            })?;
        }
        Some(b'n') => c.skip_value()?,
        _ => return Err(c.expected("an object")),
    }
    options.span = start..c.at();
    Ok(options)
}

#[cfg(test)]
mod tests;
