//! Text that looks like prose and is written for JSON already, so that bodies are put together by copying.

/// A pool of text that may be cut at word starts only, where no escape sequence can be split.
pub(crate) struct Prose {
    pool: Vec<u8>,
    word_starts: Vec<usize>,
}

/// A xorshift64 generator: fast, repeatable, and good enough for made-up words. Its state is never 0.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// A generator of its own for each `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `sides`, which is at least 1.
    pub(crate) fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// The longest word with its escapes, in bytes: every slice may run over by this much.
pub(crate) const WORD_BYTES_MAX: usize = 16;
const LINE_BYTES: usize = 64;

impl Prose {
    /// About `length` bytes of words, line breaks and quotation marks.
    pub(crate) fn new(length: usize, mut dice: Dice) -> Self {
        let mut pool = Vec::with_capacity(length + WORD_BYTES_MAX);
        let mut word_starts = Vec::new();
        let mut column = 0;
        while pool.len() < length {
            word_starts.push(pool.len());
            let letters = 2 + dice.below(9);
            for _ in 0..letters {
                pool.push(b'a' + dice.below(26) as u8);
            }
            if dice.below(64) == 0 {
                pool.extend_from_slice(b"\\\"");
            }
            column += letters + 1;
            if column > LINE_BYTES {
                pool.extend_from_slice(b"\\n");
                column = 0;
            } else {
                pool.push(b' ');
            }
        }
        Self { pool, word_starts }
    }

    /// At least `length` bytes of whole words from anywhere in the pool, at most [`WORD_BYTES_MAX`] more; less
    /// only when the pool is shorter than that.
    pub(crate) fn slice(&self, dice: &mut Dice, length: usize) -> &[u8] {
        let room = self.pool.len().saturating_sub(length + WORD_BYTES_MAX);
        let choices = self
            .word_starts
            .partition_point(|start| *start < room)
            .max(1);
        let from = self.word_starts[dice.below(choices)];
        let end = self
            .word_starts
            .partition_point(|start| *start < from + length);
        let to = self
            .word_starts
            .get(end)
            .copied()
            .unwrap_or(self.pool.len());
        &self.pool[from..to]
    }
}

#[cfg(test)]
mod tests {
    use super::{Dice, Prose, WORD_BYTES_MAX};

    #[test]
    fn a_slice_is_whole_words_of_about_the_length_asked_for() {
        let prose = Prose::new(1 << 16, Dice::new(3));
        let mut dice = Dice::new(4);
        for length in [1, 16, 64, 1_000, 8_192] {
            for _ in 0..50 {
                let slice = prose.slice(&mut dice, length);
                assert!(
                    (length..=length + WORD_BYTES_MAX).contains(&slice.len()),
                    "{length}: {}",
                    slice.len()
                );
                let json = format!("\"{}\"", String::from_utf8_lossy(slice));
                assert!(serde_json::from_str::<String>(&json).is_ok(), "{json}");
            }
        }
    }

    #[test]
    fn a_pool_shorter_than_the_slice_gives_what_it_has() {
        let prose = Prose::new(40, Dice::new(5));
        assert!(!prose.slice(&mut Dice::new(6), 8_192).is_empty());
    }
}
