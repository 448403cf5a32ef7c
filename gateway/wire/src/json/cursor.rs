//! A place in a JSON text that moves forward over valid JSON only.

use std::ops::Range;

use super::error::{ScanError, ScanProblem};
use super::special;
use super::text::RawText;
use crate::limits::JSON_DEPTH_MAX;

// `skip_value` keeps one bit per open object or array in a `u128`.
const _: () = assert!(JSON_DEPTH_MAX <= u128::BITS);

type Scanned<T> = Result<T, ScanError>;

/// Invariant: every byte before `at` has been checked against RFC 8259, except that UTF-8 is the caller's to check.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            depth: 0,
        }
    }

    /// The same text from `at`, for a second look at a value that has been passed already.
    pub(crate) fn again(&self, at: usize) -> Self {
        Self {
            bytes: self.bytes,
            at,
            depth: self.depth,
        }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The text of a range that has been passed; `None` where it is not UTF-8.
    pub(crate) fn slice(&self, span: Range<usize>) -> Option<&'a str> {
        self.bytes
            .get(span)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// Passes white space and looks at the next byte.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Passes white space and one given byte.
    #[inline]
    fn take(&mut self, byte: u8, what: &'static str) -> Scanned<()> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.expected(what))
    }

    pub(crate) fn expected(&self, what: &'static str) -> ScanError {
        ScanError::expected(self.at, what)
    }

    /// Checks that nothing but white space follows.
    pub(crate) fn end(&mut self) -> Scanned<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("nothing after the closing brace")),
        }
    }

    /// Walks an object: `field` is called behind each colon and must pass exactly one value.
    pub(crate) fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, RawText<'a>) -> Scanned<()>,
    ) -> Scanned<()> {
        self.take(b'{', "an object")?;
        self.enter()?;
        if self.peek() == Some(b'}') {
            return self.leave();
        }
        loop {
            let key = self.key()?;
            field(self, key)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => return self.leave(),
                _ => return Err(self.expected("`,` or `}`")),
            }
        }
    }

    /// Walks an array: `element` is called before each value and must pass exactly one.
    pub(crate) fn array(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Scanned<()>,
    ) -> Scanned<()> {
        self.take(b'[', "an array")?;
        self.enter()?;
        if self.peek() == Some(b']') {
            return self.leave();
        }
        loop {
            element(self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => return self.leave(),
                _ => return Err(self.expected("`,` or `]`")),
            }
        }
    }

    fn enter(&mut self) -> Scanned<()> {
        if self.depth == JSON_DEPTH_MAX {
            return Err(ScanError::new(self.at - 1, ScanProblem::TooDeep));
        }
        self.depth += 1;
        Ok(())
    }

    /// Passes the closing byte, which `peek` has seen.
    fn leave(&mut self) -> Scanned<()> {
        self.depth -= 1;
        self.at += 1;
        Ok(())
    }

    fn key(&mut self) -> Scanned<RawText<'a>> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key in double quotes"));
        }
        let key = self.string()?;
        self.take(b':', "`:`")?;
        Ok(key)
    }

    #[inline]
    fn skip_key(&mut self) -> Scanned<()> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key in double quotes"));
        }
        self.skip_string()?;
        self.take(b':', "`:`")
    }

    /// Passes one value of any kind and says where it lies.
    pub(crate) fn value(&mut self) -> Scanned<Range<usize>> {
        self.peek();
        let start = self.at;
        self.skip_value()?;
        Ok(start..self.at)
    }

    /// Passes one value without recursion.
    pub(crate) fn skip_value(&mut self) -> Scanned<()> {
        let outer = self.depth;
        // Bit 0 says whether the innermost open bracket is an object's.
        let mut objects: u128 = 0;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.skip_string()?;
                }
                Some(b'{') => {
                    self.at += 1;
                    self.enter()?;
                    if self.peek() == Some(b'}') {
                        self.leave()?;
                    } else {
                        objects = objects << 1 | 1;
                        self.skip_key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    self.enter()?;
                    if self.peek() == Some(b']') {
                        self.leave()?;
                    } else {
                        objects <<= 1;
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            if self.close_brackets(outer, &mut objects)? {
                return Ok(());
            }
        }
    }

    /// Behind a value: passes closing brackets up to a comma and, in an object, the next key.
    /// `true` where the outermost value has ended.
    fn close_brackets(&mut self, outer: u32, objects: &mut u128) -> Scanned<bool> {
        while self.depth > outer {
            let in_object = *objects & 1 == 1;
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    if in_object {
                        self.skip_key()?;
                    }
                    return Ok(false);
                }
                Some(b'}') if in_object => self.leave()?,
                Some(b']') if !in_object => self.leave()?,
                _ if in_object => return Err(self.expected("`,` or `}`")),
                _ => return Err(self.expected("`,` or `]`")),
            }
            *objects >>= 1;
        }
        Ok(true)
    }

    /// Passes a number, `true`, `false` or `null`.
    fn scalar(&mut self) -> Scanned<()> {
        match self.bytes.get(self.at) {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => Err(self.expected("a JSON value")),
        }
    }

    fn word(&mut self, word: &'static [u8]) -> Scanned<()> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.expected("a JSON value"))
    }

    fn number(&mut self) -> Scanned<()> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        // A leading zero stands alone: `01` is not a number.
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Scanned<()> {
        let start = self.at;
        while matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            Err(self.expected("a digit"))
        } else {
            Ok(())
        }
    }

    /// Passes a string; the next byte is its opening quote.
    #[inline]
    pub(crate) fn string(&mut self) -> Scanned<RawText<'a>> {
        let start = self.at + 1;
        let escaped = self.skip_string()?;
        Ok(RawText {
            raw: &self.bytes[start..self.at - 1],
            offset: start,
            escaped,
        })
    }

    /// Passes a string; the next byte is its opening quote. `true` where there is an escape in it.
    #[inline]
    fn skip_string(&mut self) -> Scanned<bool> {
        let mut at = self.at + 1;
        let mut escaped = false;
        loop {
            at = special::next(self.bytes, at);
            match self.bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    at += self.escape(at)?;
                }
                Some(_) => {
                    return Err(ScanError::expected(
                        at,
                        "an escape such as `\\n` in place of a control character",
                    ));
                }
                None => return Err(ScanError::expected(at, "a closing double quote")),
            }
        }
    }

    /// Bytes of the escape that begins at `at`, its form checked.
    fn escape(&self, at: usize) -> Scanned<usize> {
        match self.bytes.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
            Some(b'u') => match self.bytes.get(at + 2..at + 6) {
                Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => Ok(6),
                _ => Err(ScanError::expected(at + 2, "four hexadecimal digits")),
            },
            _ => Err(ScanError::expected(
                at + 1,
                "one of `\"\\/bfnrtu` behind the backslash",
            )),
        }
    }
}
