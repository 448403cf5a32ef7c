//! Where an event ends, found with as much memory as three flags: chunks may be cut anywhere.

use memchr::memchr2;

/// What has been seen of the current line. An event ends with an empty line; a line ends with LF, CR, or CR and LF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Boundary {
    line_is_empty: bool,
    /// The last byte was a CR: an LF that comes next belongs to it, also when the event has been handed out already.
    after_cr: bool,
}

impl Boundary {
    pub(super) fn new() -> Self {
        Self {
            line_is_empty: true,
            after_cr: false,
        }
    }

    /// The number of bytes of `chunk` up to the end of the current event, its blank line included; `None` where it goes on.
    pub(super) fn advance(&mut self, chunk: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < chunk.len() {
            if std::mem::take(&mut self.after_cr) && chunk[at] == b'\n' {
                at += 1;
                continue;
            }
            let Some(length) = memchr2(b'\n', b'\r', &chunk[at..]) else {
                self.line_is_empty = false;
                return None;
            };
            let ends_event = self.line_is_empty && length == 0;
            self.line_is_empty = true;
            let end = at + length;
            at = end + 1;
            if chunk[end] == b'\r' {
                match chunk.get(at) {
                    Some(b'\n') => at += 1,
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            if ends_event {
                return Some(at);
            }
        }
        None
    }
}
