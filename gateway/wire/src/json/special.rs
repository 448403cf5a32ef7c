//! Where the next byte of a string lies that means something: a quote, a backslash, or a control character, which may not stand there.

/// Bytes looked at together. The compiler turns the comparison of one block into vector instructions.
const BLOCK_BYTES: usize = 32;

/// Clean words in a row after which blocks are tried.
const WORDS_FIRST: u32 = 2;

/// One bit in each byte of a word, times a byte: that byte eight times over.
const EACH: u64 = 0x0101_0101_0101_0101;

/// The offset of the first special byte at or after `at`; the length of `bytes` where there is none.
#[inline]
pub(super) fn next(bytes: &[u8], mut at: usize) -> usize {
    // Most strings are short: names, and text between two escapes. Only after a few clean words do whole blocks pay.
    let mut words = 0;
    while let Some(word) = word_at(bytes, at) {
        let found = specials(word);
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
        words += 1;
        if words == WORDS_FIRST {
            at = clean_blocks(bytes, at);
        }
    }
    while bytes.get(at).is_some_and(|byte| !is_special(*byte)) {
        at += 1;
    }
    at
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}

/// Where the run of blocks without a special byte ends that begins at `at`.
fn clean_blocks(bytes: &[u8], at: usize) -> usize {
    let blocks = bytes[at..].chunks_exact(BLOCK_BYTES);
    let clean = blocks.take_while(|block| !block.iter().fold(false, |any, b| any | is_special(*b)));
    at + clean.count() * BLOCK_BYTES
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// The top bit of each byte of `word` that is special. Only the lowest bit set can be trusted: a subtraction that borrows
/// reaches into the bytes above.
#[inline]
fn specials(word: u64) -> u64 {
    let zero_bytes = |word: u64| word.wrapping_sub(EACH) & !word;
    let control = word.wrapping_sub(EACH * 0x20) & !word;
    let quote = zero_bytes(word ^ (EACH * b'"' as u64));
    let backslash = zero_bytes(word ^ (EACH * b'\\' as u64));
    (control | quote | backslash) & (EACH << 7)
}
