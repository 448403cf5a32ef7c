//! Token bytes to text deltas: whole characters only, and nothing that may still become a stop string.
//!
//! Where tokens or chunks are cut means nothing (A11): the deltas together are the lossy UTF-8 decoding of all bytes, up
//! to the first stop string.

mod stop;
mod utf8;

use stop::StopScan;
pub(crate) use utf8::Utf8Join;

/// What the tokens of a vocabulary stand for.
pub trait TokenText: Send + Sync {
    /// The bytes that `token` adds to the text; they need not be whole characters. Empty for a token unknown to it.
    fn bytes(&self, token: u32) -> &[u8];
    /// Whether `token` is a mark of the format, such as the end of a turn, and no part of the text.
    fn is_special(&self, token: u32) -> bool;
}

/// Text that may be sent now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextDelta {
    /// May be empty.
    pub text: String,
    /// A stop string has come: `text` ends before it, and nothing follows.
    pub stopped: bool,
}

/// The text of one answer.
#[derive(Debug)]
pub struct TextStream {
    utf8: Utf8Join,
    stop: StopScan,
    /// Special tokens are text too.
    show_special: bool,
    stopped: bool,
}

impl TextStream {
    /// Ends before the first of `stop_strings`; an empty one would end every answer at once and is passed over.
    pub fn new(stop_strings: Vec<String>, show_special: bool) -> Self {
        let (utf8, stop) = (Utf8Join::default(), StopScan::new(stop_strings));
        Self {
            utf8,
            stop,
            show_special,
            stopped: false,
        }
    }

    /// Adds a token.
    pub fn push(&mut self, token: u32, vocabulary: &dyn TokenText) -> TextDelta {
        if vocabulary.is_special(token) && !self.show_special {
            return TextDelta {
                text: String::new(),
                stopped: self.stopped,
            };
        }
        self.push_bytes(vocabulary.bytes(token))
    }

    /// Adds bytes of text; they need not be whole characters.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> TextDelta {
        let text = self.utf8.push(bytes);
        self.scan(&text)
    }

    /// Ends the answer: an incomplete character becomes U+FFFD, and what was held back for a stop string comes out.
    pub fn finish(&mut self) -> TextDelta {
        let text = self.utf8.finish();
        let mut delta = self.scan(&text);
        if !delta.stopped {
            delta.text += &self.stop.finish();
        }
        delta
    }

    fn scan(&mut self, text: &str) -> TextDelta {
        if self.stopped {
            return TextDelta {
                text: String::new(),
                stopped: true,
            };
        }
        let delta = self.stop.push(text);
        self.stopped = delta.stopped;
        delta
    }
}

#[cfg(test)]
mod tests;
