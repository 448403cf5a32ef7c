//! Words and pieces of words as numbers: whole words for the table that was distilled from a sentence encoder, and runs of
//! characters, hashed, for languages that it does not know.

use super::text::{Kind, Normal, Word};

/// Buckets that runs of characters are hashed to; a power of two.
pub(super) const BUCKETS: u32 = 1 << 14;
/// Lengths of runs in words, one after the other, with the word's borders counting as characters.
const RUNS: [usize; 3] = [3, 4, 5];
/// Lengths of runs in scripts without spaces.
const DENSE_RUNS: [usize; 2] = [1, 2];

const SEED: u64 = 0xcbf2_9ce4_8422_2325;
const STEP: u64 = 0x0000_0100_0000_01b3;

fn mix(hash: u64, c: char) -> u64 {
    (hash ^ u64::from(u32::from(c))).wrapping_mul(STEP)
}

/// Spreads what [`mix`] gathered over all bits.
fn finish(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

fn bucket(hash: u64) -> u32 {
    (finish(hash) >> 32) as u32 % BUCKETS
}

/// A whole word's number.
pub(super) fn word(normal: &Normal, word: &Word) -> u32 {
    let hash = normal.chars(word).fold(SEED, mix);
    (finish(hash) >> 32) as u32
}

/// Calls `each` with the bucket of every run of characters in a word.
pub(super) fn runs(
    normal: &Normal,
    word: &Word,
    buffer: &mut Vec<char>,
    mut each: impl FnMut(u32),
) {
    buffer.clear();
    let lengths: &[usize] = match word.kind {
        Kind::Letters => &RUNS,
        Kind::Dense => &DENSE_RUNS,
        Kind::Digits => return,
    };
    if word.kind == Kind::Letters {
        buffer.push(' ');
    }
    buffer.extend(normal.chars(word));
    if word.kind == Kind::Letters {
        buffer.push(' ');
    }
    let longest = lengths.iter().copied().max().unwrap_or(0);
    for start in 0..buffer.len() {
        let run = &buffer[start..buffer.len().min(start + longest)];
        let Some((first, more)) = run.split_at_checked(lengths[0]) else {
            continue;
        };
        let mut hash = first.iter().copied().fold(SEED, mix);
        each(bucket(hash));
        for c in more {
            hash = mix(hash, *c);
            each(bucket(hash));
        }
    }
}
