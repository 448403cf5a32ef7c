//! The fields of one event, read from its raw lines.

use std::ops::Range;

use memchr::memchr2;

/// The byte order mark that may stand in front of the very first field of a stream.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Calls `field` with the name's bytes and the value's place for each line that has a field; comments and blank lines have none.
pub(super) fn each_field(raw: &[u8], first: bool, mut field: impl FnMut(&[u8], Range<usize>)) {
    let mut at = if first && raw.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len()
    } else {
        0
    };
    while at < raw.len() {
        let end = memchr2(b'\n', b'\r', &raw[at..]).map_or(raw.len(), |length| at + length);
        let line = &raw[at..end];
        match line.iter().position(|b| *b == b':') {
            _ if line.is_empty() => {}
            Some(0) => {}
            Some(colon) => {
                let mut value = at + colon + 1;
                // Exactly one space is removed.
                if value < end && raw[value] == b' ' {
                    value += 1;
                }
                field(&line[..colon], value..end);
            }
            None => field(line, end..end),
        }
        at = end + 1;
    }
}
