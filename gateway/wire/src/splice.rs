//! Edits of a body by byte range, applied once: everything that is not edited stays the client's own bytes.

use std::fmt;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::scan::ChatScan;

/// Replacements to make in one body. Ranges may be added in any order and must not overlap; of two insertions at one place the
/// one added first comes first.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    edits: Vec<(Range<usize>, Bytes)>,
}

/// A range that cannot be edited: it overlaps another, runs backwards or leaves the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpliceError {
    /// The offending byte range.
    pub range: Range<usize>,
}

impl Edits {
    /// No edits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Puts `new` in place of the bytes of `range`; an empty range inserts in front of its start.
    pub fn replace(&mut self, range: Range<usize>, new: impl Into<Bytes>) {
        self.edits.push((range, new.into()));
    }

    /// [`Self::replace`] that takes the place of an earlier edit of the very same range.
    pub fn replace_again(&mut self, range: Range<usize>, new: impl Into<Bytes>) {
        self.edits.retain(|(earlier, _)| *earlier != range);
        self.replace(range, new);
    }

    /// Asks for usage at the end of a stream: sets `stream_options.include_usage` to true, changing as few bytes as it can,
    /// and none where it is true already. `scan` must be of the body that the edits will be applied to.
    pub fn include_usage(&mut self, scan: &ChatScan) {
        const FIELD: &[u8] = b"\"stream_options\":{\"include_usage\":true}";
        let Some(options) = &scan.stream_options else {
            let mut field = BytesMut::with_capacity(FIELD.len() + 1);
            if scan.has_fields {
                field.extend_from_slice(b",");
            }
            field.extend_from_slice(FIELD);
            return self.replace(scan.close..scan.close, field);
        };
        if !options.is_object {
            return self.replace(options.span.clone(), &b"{\"include_usage\":true}"[..]);
        }
        match &options.include_usage_span {
            Some(_) if options.include_usage == Some(true) => {}
            Some(span) => self.replace(span.clone(), &b"true"[..]),
            None => {
                let inside = options.span.start + 1;
                let member = if options.has_fields {
                    &b"\"include_usage\":true,"[..]
                } else {
                    &b"\"include_usage\":true"[..]
                };
                self.replace(inside..inside, member);
            }
        }
    }

    /// The body with all edits made. Without edits this is the same memory, not a copy.
    ///
    /// # Errors
    /// Ranges that overlap or leave the body; then nothing is edited.
    pub fn apply(mut self, body: &Bytes) -> Result<Bytes, SpliceError> {
        if self.edits.is_empty() {
            return Ok(body.clone());
        }
        self.edits
            .sort_by_key(|(range, _)| (range.start, range.end));
        let mut kept = 0;
        let mut length = body.len();
        for (range, new) in &self.edits {
            if range.start < kept || range.end < range.start || range.end > body.len() {
                return Err(SpliceError {
                    range: range.clone(),
                });
            }
            kept = range.end;
            length = length - range.len() + new.len();
        }
        let mut edited = BytesMut::with_capacity(length);
        let mut from = 0;
        for (range, new) in &self.edits {
            edited.extend_from_slice(&body[from..range.start]);
            edited.extend_from_slice(new);
            from = range.end;
        }
        edited.extend_from_slice(&body[from..]);
        Ok(edited.freeze())
    }
}

impl fmt::Display for SpliceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.range;
        write!(
            f,
            "edit of bytes {start}..{end} overlaps another or leaves the body"
        )
    }
}

impl std::error::Error for SpliceError {}

#[cfg(test)]
mod tests;
