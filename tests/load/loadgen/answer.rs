//! Reads an answer as it arrives: counts its events and keeps its end, where `[DONE]` and the usage are.

use memchr::{memchr_iter, memmem};

/// Bytes of an answer's end that are kept: a usage object with all its details fits twice.
const TAIL_BYTES_MAX: usize = 512;

/// What of an answer has been seen.
#[derive(Debug, Default)]
pub(crate) struct AnswerScan {
    bytes: u64,
    events: u64,
    /// Offset just behind the last line break; an event ends where a line break follows at once.
    line_start: u64,
    tail: Vec<u8>,
}

/// Prompt tokens as the engine counted them, and how many of these it had in its cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
}

impl AnswerScan {
    /// Takes the next chunk; returns how many server-sent events end within it.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> u64 {
        let mut events = 0;
        for at in memchr_iter(b'\n', chunk) {
            let at = self.bytes + at as u64;
            if at == self.line_start {
                events += 1;
            }
            self.line_start = at + 1;
        }
        self.bytes += chunk.len() as u64;
        self.events += events;
        let keep = &chunk[chunk.len().saturating_sub(TAIL_BYTES_MAX)..];
        let surplus = (self.tail.len() + keep.len()).saturating_sub(TAIL_BYTES_MAX);
        self.tail.drain(..surplus);
        self.tail.extend_from_slice(keep);
        events
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a stream came to its proper end.
    pub(crate) fn is_done(&self) -> bool {
        self.tail.ends_with(b"data: [DONE]\n\n")
    }

    /// The end of the answer, to show what a failure says.
    pub(crate) fn tail(&self) -> String {
        String::from_utf8_lossy(&self.tail).into_owned()
    }

    /// The usage in the answer's end, where it has one.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let number = |key: &[u8]| {
            let at = memmem::rfind(&self.tail, key)? + key.len();
            let digits = self.tail[at..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit());
            Some(digits.fold(0_u64, |number, digit| {
                number.saturating_mul(10) + u64::from(digit - b'0')
            }))
        };
        Some(Usage {
            prompt_tokens: number(b"\"prompt_tokens\":")?,
            cached_tokens: number(b"\"cached_tokens\":")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{AnswerScan, TAIL_BYTES_MAX, Usage};
    use proptest::prelude::*;

    #[track_caller]
    fn check(chunks: &[&str], events: u64, done: bool) {
        let mut scan = AnswerScan::default();
        let counted: u64 = chunks.iter().map(|chunk| scan.push(chunk.as_bytes())).sum();
        assert_eq!(
            (counted, scan.events, scan.is_done()),
            (events, events, done),
            "{chunks:?}"
        );
    }

    #[test]
    fn an_event_ends_at_a_blank_line() {
        check(&["data: a\n\n"], 1, false);
        check(&["data: a\n", "\n"], 1, false);
        check(&["data: a\ndata: b\n\ndata: [DONE]\n\n"], 2, true);
        check(&["data: a\n\ndata: [DO", "NE]\n", "\n"], 2, true);
        check(&["data: a\n"], 0, false);
    }

    #[test]
    fn usage_is_read_from_the_end() {
        let mut scan = AnswerScan::default();
        scan.push("x".repeat(3 * TAIL_BYTES_MAX).as_bytes());
        assert_eq!(scan.usage(), None);
        scan.push(
            br#"{"usage":{"prompt_tokens":200,"prompt_tokens_details":{"cached_tokens":160}}}"#,
        );
        assert_eq!(
            scan.usage(),
            Some(Usage {
                prompt_tokens: 200,
                cached_tokens: 160
            })
        );
    }

    proptest! {
        #[test]
        fn any_cuts_give_the_same_scan(text in "[\n\nad: ]{0,80}", cuts in prop::collection::vec(0_usize..80, 0..6)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut pieces = AnswerScan::default();
            let mut from = 0;
            for to in cuts.into_iter().chain([text.len()]) {
                pieces.push(&text.as_bytes()[from..to]);
                from = to;
            }
            let mut whole = AnswerScan::default();
            whole.push(text.as_bytes());
            prop_assert_eq!(format!("{:?}", pieces), format!("{:?}", whole));
        }
    }
}
