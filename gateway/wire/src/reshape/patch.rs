//! Splices into one JSON text, gathered first and written once. Its memory is kept from text to text.

use std::ops::Range;

use bytes::BytesMut;

/// Replacements in one text. Their ranges do not overlap; an empty range inserts.
#[derive(Debug, Default)]
pub(super) struct Patch {
    /// Places in the old text with what stands there in the new: a range of `text`.
    edits: Vec<(Range<usize>, Range<usize>)>,
    text: Vec<u8>,
}

impl Patch {
    pub(super) fn clear(&mut self) {
        self.edits.clear();
        self.text.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Puts what `write` writes in place of `range`.
    pub(super) fn replace(&mut self, range: Range<usize>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        write(&mut self.text);
        self.edits.push((range, start..self.text.len()));
    }

    pub(super) fn null(&mut self, range: Range<usize>) {
        self.replace(range, |out| out.extend_from_slice(b"null"));
    }

    /// Appends `old` with all replacements made.
    pub(super) fn write(&mut self, old: &[u8], out: &mut BytesMut) {
        // Insertions come before what replaces the bytes behind them.
        self.edits
            .sort_by_key(|(range, _)| (range.start, range.end));
        out.reserve(old.len() + self.text.len());
        let mut from = 0;
        for (range, new) in &self.edits {
            out.extend_from_slice(old.get(from..range.start).unwrap_or_default());
            out.extend_from_slice(self.text.get(new.clone()).unwrap_or_default());
            from = range.end;
        }
        out.extend_from_slice(old.get(from..).unwrap_or_default());
    }
}

/// Appends `"name":"text"`.
pub(super) fn member(out: &mut Vec<u8>, name: &str, text: &str) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    string(out, text);
}

/// Appends `text` as a JSON string.
pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}
