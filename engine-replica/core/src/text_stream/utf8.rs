//! Bytes to characters, across any cuts.

/// Holds the beginning of a character, 3 bytes at most.
#[derive(Debug, Default)]
pub(crate) struct Utf8Join {
    held: Vec<u8>,
}

impl Utf8Join {
    /// The characters that are complete now; U+FFFD for bytes that belong to none.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = self.held.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text += valid;
                    rest = &[];
                }
                Err(error) => {
                    let (valid, invalid) = rest.split_at(error.valid_up_to());
                    text += &String::from_utf8_lossy(valid);
                    rest = invalid;
                    if let Some(length) = error.error_len() {
                        text.push(char::REPLACEMENT_CHARACTER);
                        rest = &invalid[length..];
                        continue;
                    }
                }
            }
            self.held = rest.to_vec();
            return text;
        }
    }

    /// Whether nothing of an unfinished character is held.
    pub(crate) fn is_whole(&self) -> bool {
        self.held.is_empty()
    }

    /// What an unfinished character is worth at the end.
    pub(super) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}
