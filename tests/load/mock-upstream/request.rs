//! Reads of a request body just what the answer depends on, without parsing or keeping all of it: a mock that
//! parses 256 KB would take the CPU from the gateway that is being measured.

use memchr::memmem;
use std::hash::{DefaultHasher, Hasher as _};

/// Bytes of the body's start that are kept: a spliced-in field is there, and the session's mark, if behind a system prompt of 8 KB.
const HEAD_BYTES: usize = 12 * 1_024;
/// Bytes of the body's end that are kept: where clients write their options.
const TAIL_BYTES: usize = 2 * 1_024;
/// Text before a session's mark that counts as a system prompt, in bytes.
const SHARED_BYTES_MIN: usize = 1_024;
/// Bytes per token, as in English text.
const BYTES_PER_TOKEN: u64 = 4;

/// What of a body has arrived.
#[derive(Debug, Default)]
pub(crate) struct BodyScan {
    head: Vec<u8>,
    tail: Vec<u8>,
    bytes: u64,
}

impl BodyScan {
    /// Takes the next chunk.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        let room = HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(&chunk[..chunk.len().min(room)]);
        let keep = &chunk[chunk.len().saturating_sub(TAIL_BYTES)..];
        let surplus = (self.tail.len() + keep.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
        self.tail.extend_from_slice(keep);
    }

    /// Prompt tokens that an engine would count.
    pub(crate) fn tokens(&self) -> u64 {
        self.bytes / BYTES_PER_TOKEN
    }

    /// Whether `"stream": true` stands near the start or the end.
    pub(crate) fn wants_stream(&self) -> bool {
        self.says_true(b"\"stream\"")
    }

    /// Whether `"include_usage": true` stands near the start or the end.
    pub(crate) fn wants_usage(&self) -> bool {
        self.says_true(b"\"include_usage\"")
    }

    /// The number in the mark `[[S:number]]`, which survives proxies that drop headers or write the body anew.
    pub(crate) fn session(&self) -> Option<u64> {
        let at = memmem::find(&self.head, b"[[S:")? + 4;
        let digits = self.head[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .take(18);
        Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
    }

    /// A hash of the text before that mark and its tokens: what conversations with one system prompt share. `None` where that is less than
    /// a request's frame may take.
    pub(crate) fn shared(&self) -> Option<(u64, u64)> {
        let before = &self.head[..memmem::find(&self.head, b"[[S:")?];
        if before.len() < SHARED_BYTES_MIN {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(before);
        Some((hasher.finish(), before.len() as u64 / BYTES_PER_TOKEN))
    }

    fn says_true(&self, key: &[u8]) -> bool {
        [&self.head, &self.tail].into_iter().any(|part| {
            memmem::find_iter(part, key).any(|at| {
                let mut rest = part[at + key.len()..]
                    .iter()
                    .filter(|byte| !byte.is_ascii_whitespace());
                rest.next() == Some(&b':') && rest.next() == Some(&b't')
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{BodyScan, HEAD_BYTES};
    use proptest::prelude::*;

    /// (tokens, session, stream, usage) of a body.
    type Seen = (u64, Option<u64>, bool, bool);

    fn scan(chunks: &[&[u8]]) -> Seen {
        let mut scan = BodyScan::default();
        for chunk in chunks {
            scan.push(chunk);
        }
        (
            scan.tokens(),
            scan.session(),
            scan.wants_stream(),
            scan.wants_usage(),
        )
    }

    #[track_caller]
    fn check(body: &str, expect: Seen) {
        assert_eq!(scan(&[body.as_bytes()]), expect, "{body}");
    }

    #[test]
    fn options_are_seen_at_either_end() {
        check(r#"{"messages":[]}"#, (3, None, false, false));
        check(r#"{"stream":true}"#, (3, None, true, false));
        check(r#"{"stream" : false}"#, (4, None, false, false));
        check(
            r#"{"stream_options":{"include_usage": true}}"#,
            (10, None, false, true),
        );
        let long = format!(
            r#"{{"content":"[[S:42]] {}","stream" : true}}"#,
            "x".repeat(3 * HEAD_BYTES)
        );
        check(&long, (long.len() as u64 / 4, Some(42), true, false));
        let long = format!(
            r#"{{"stream":true,"content":"{}"}}"#,
            "x".repeat(3 * HEAD_BYTES)
        );
        check(&long, (long.len() as u64 / 4, None, true, false));
    }

    #[test]
    fn the_text_before_the_mark_is_what_sessions_share() {
        let shared = |system: &str, session: u32| {
            let body = format!(r#"{{"system":"{system}","content":"[[S:{session}]] and so on"}}"#);
            let mut scan = BodyScan::default();
            scan.push(body.as_bytes());
            scan.shared()
        };
        let long = "x".repeat(8_192);
        assert_eq!(shared("short", 1), None);
        assert_eq!(shared(&long, 1), shared(&long, 2));
        assert_eq!(
            shared(&long, 1).map(|(_, tokens)| tokens),
            Some((8_192 + 24) / 4)
        );
        assert_ne!(shared(&long, 1), shared(&long[1..], 1));
    }

    proptest! {
        #[test]
        fn any_cuts_give_the_same_scan(fill in 0..3 * HEAD_BYTES, cuts in prop::collection::vec(0_usize..20_000, 0..5)) {
            let body = format!(r#"{{"content":"[[S:7]] {}","stream":true}}"#, "x".repeat(fill));
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
            cuts.sort_unstable();
            cuts.push(body.len());
            let starts = std::iter::once(0).chain(cuts.iter().copied());
            let pieces: Vec<&[u8]> = starts.zip(&cuts).map(|(from, to)| &body.as_bytes()[from..*to]).collect();
            prop_assert_eq!(scan(&pieces), scan(&[body.as_bytes()]));
        }
    }
}
