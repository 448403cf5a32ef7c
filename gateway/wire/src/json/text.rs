//! The text between two quotes of a JSON string, with its escapes resolved only where someone asks.

use std::borrow::Cow;

use super::error::{ScanError, ScanProblem};

/// A string as it lies in the JSON text. Its escapes have been checked for form (`\u` and four hex digits), not for meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawText<'a> {
    /// The bytes between the quotes.
    pub(crate) raw: &'a [u8],
    /// Offset of `raw` in the JSON text.
    pub(crate) offset: usize,
    /// Whether there is a backslash in it.
    pub(crate) escaped: bool,
}

impl<'a> RawText<'a> {
    /// The bytes that a name is compared by. Where the escapes mean nothing (half a surrogate pair) the raw bytes
    /// stand for themselves: such a name equals no name that this crate looks for.
    pub(crate) fn name(&self) -> Cow<'a, [u8]> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        match self.to_text() {
            Ok(text) => Cow::Owned(text.into_bytes()),
            Err(_) => Cow::Borrowed(self.raw),
        }
    }

    /// The text that the string means.
    pub(crate) fn to_text(self) -> Result<String, ScanError> {
        let source = std::str::from_utf8(self.raw)
            .map_err(|e| self.error_at(e.valid_up_to(), ScanProblem::NotUtf8))?;
        if !self.escaped {
            return Ok(source.to_owned());
        }
        let mut text = String::with_capacity(source.len());
        let mut rest = source;
        while let Some(before) = rest.find('\\') {
            text.push_str(&rest[..before]);
            let at = source.len() - rest.len() + before;
            let (meant, length) = unescape(&rest.as_bytes()[before..]).ok_or_else(|| {
                self.error_at(
                    at,
                    ScanProblem::Expected("an escape that means a character"),
                )
            })?;
            text.push(meant);
            rest = &rest[before + length..];
        }
        text.push_str(rest);
        Ok(text)
    }

    fn error_at(&self, at: usize, problem: ScanProblem) -> ScanError {
        ScanError::new(self.offset + at, problem)
    }
}

/// The character that an escape means and the bytes that it takes; `escape` begins with a backslash.
fn unescape(escape: &[u8]) -> Option<(char, usize)> {
    let simple = match escape.get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unescape_unicode(escape),
        _ => return None,
    };
    Some((simple, 2))
}

/// `\uXXXX`, or two of them that make a surrogate pair. Half a pair is not a character.
fn unescape_unicode(escape: &[u8]) -> Option<(char, usize)> {
    let high = hex4(escape.get(2..6)?)?;
    if !(0xD800..0xDC00).contains(&high) {
        return char::from_u32(high).map(|c| (c, 6));
    }
    if escape.get(6..8)? != br"\u" {
        return None;
    }
    let low = hex4(escape.get(8..12)?)?;
    if !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)).map(|c| (c, 12))
}

fn hex4(digits: &[u8]) -> Option<u32> {
    let mut value = 0;
    for digit in digits {
        value = value * 16 + char::from(*digit).to_digit(16)?;
    }
    Some(value)
}
