//! The bytes of every token: byte-level BPE writes each byte as a printable character, and this reads that back.

use super::VOCAB_MAX;
use super::added::AddedToken;

/// Bytes by token id, end to end in one buffer.
#[derive(Debug)]
pub(super) struct TokenBytes {
    bytes: Vec<u8>,
    /// `ends[id]` is where the bytes of `id` end; they begin where the id before ends.
    ends: Vec<u32>,
}

impl TokenBytes {
    /// The table with the problems that do not stand in the way of making it.
    pub(super) fn new(
        plain: &tokenizers::Tokenizer,
        added: &[AddedToken],
    ) -> Result<(Self, Vec<String>), Vec<String>> {
        let vocab = plain.get_vocab(false);
        let highest = vocab
            .values()
            .copied()
            .chain(added.iter().map(|token| token.id))
            .max();
        let len = highest.map_or(0, |highest| highest as usize + 1);
        if len > VOCAB_MAX {
            return Err(vec![format!(
                "the highest token id is {}, expected under {VOCAB_MAX}",
                len - 1
            )]);
        }
        let mut by_id: Vec<Vec<u8>> = vec![Vec::new(); len];
        let mut single = [false; 256];
        for (text, id) in &vocab {
            let bytes = invert(text);
            if let [byte] = bytes.as_slice() {
                single[usize::from(*byte)] = true;
            }
            by_id[*id as usize] = bytes;
        }
        for token in added {
            by_id[token.id as usize] = token.text.clone().into_bytes();
        }
        let mut table = Self {
            bytes: Vec::new(),
            ends: Vec::with_capacity(len),
        };
        for bytes in by_id {
            table.bytes.extend_from_slice(&bytes);
            let end = u32::try_from(table.bytes.len())
                .map_err(|_| vec!["the token texts take more than 4 GB together".to_owned()])?;
            table.ends.push(end);
        }
        Ok((table, missing_bytes(&single)))
    }

    pub(super) fn get(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else {
            return &[];
        };
        let start = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..end as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }
}

/// A vocabulary without some byte cannot encode every text: the library drops that byte in silence. Vocabularies that
/// were trained from the bytes of real text lack some that real text lacks (SmolLM2 has no U+0004), and every engine
/// drops those; one that lacks others is no byte-level vocabulary.
fn missing_bytes(single: &[bool; 256]) -> Vec<String> {
    let missing: Vec<u8> = (0..=255)
        .filter(|&byte| in_real_text(byte) && !single[usize::from(byte)])
        .collect();
    match missing.as_slice() {
        [] => Vec::new(),
        [first, ..] => vec![format!(
            "the vocabulary has no token for {} of the bytes that text is made of (0x{first:02X} first); this build \
             reads only byte-level BPE, which has all of them",
            missing.len()
        )],
    }
}

/// All bytes but control characters other than tab and line ends, the first bytes of planes 4 to 11, which Unicode
/// has not assigned, and bytes that UTF-8 never has.
fn in_real_text(byte: u8) -> bool {
    match byte {
        b'\t' | b'\n' | b'\r' => true,
        0x00..=0x1F | 0x7F | 0xC0 | 0xC1 | 0xF1 | 0xF2 | 0xF5..=0xFF => false,
        _ => true,
    }
}

/// The bytes of a token's text in a byte-level vocabulary. Text outside the alphabet (padding entries, tokens added
/// by hand) stands for itself.
fn invert(text: &str) -> Vec<u8> {
    text.chars()
        .map(byte_of)
        .collect::<Option<Vec<u8>>>()
        .unwrap_or_else(|| text.as_bytes().to_vec())
}

/// GPT-2's alphabet: printable Latin-1 characters stand for their own code, the other 68 bytes are counted up from
/// U+0100 in ascending order.
fn byte_of(c: char) -> Option<u8> {
    match u32::from(c) {
        code @ (0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) => u8::try_from(code).ok(),
        code @ 0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        code @ 0x121..=0x142 => u8::try_from(code - 0x121 + 0x7F).ok(),
        0x143 => Some(0xAD),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_names_each_byte_once() {
        let mut seen: Vec<u8> = (0..0x200)
            .filter_map(char::from_u32)
            .filter_map(byte_of)
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn the_alphabet_is_the_library_s() {
        let library = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
        assert_eq!(library.len(), 256);
        assert!(library.iter().all(|&c| byte_of(c).is_some()));
        assert_eq!(
            [byte_of('Ġ'), byte_of('Ċ'), byte_of('Ń')],
            [Some(b' '), Some(b'\n'), Some(0xAD)]
        );
    }
}
