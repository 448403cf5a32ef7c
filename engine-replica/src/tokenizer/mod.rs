//! Text to token ids and back, for byte-level BPE vocabularies.
//!
//! Two things differ from calling the tokenizers library directly. Control tokens are found by this module, so that
//! a prompt can say where none may be found: a client's `<|im_start|>` stays text (see `template::Rendered`). And
//! every id has its exact bytes, so that a stream of tokens can be turned into text without decoding it again.

mod added;
mod bytes;
mod json;
mod pre;
mod vocab;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use self::added::{AddedToken, AddedTokens, Piece};
use self::bytes::TokenBytes;
pub(crate) use self::vocab::Vocab;
use crate::template::Rendered;

/// Highest token id that a vocabulary may have; the largest models have 260 thousand tokens.
const VOCAB_MAX: usize = 1 << 22;

/// A model's vocabulary.
#[derive(Debug)]
pub struct Tokenizer {
    /// Knows no added tokens: whatever it is given is text.
    plain: tokenizers::Tokenizer,
    added: AddedTokens,
    bytes: TokenBytes,
    /// Ids of control tokens.
    special: HashSet<u32>,
    /// Put in front of every prompt that does not have it yet.
    bos: Option<u32>,
}

/// The tokenizers library could not encode a text.
#[derive(Debug, thiserror::Error)]
#[error("the text could not be split into tokens: {0}")]
pub struct EncodeError(String);

impl Tokenizer {
    /// Reads a Hugging Face `tokenizer.json`. `bos` is the text of the model's beginning-of-sequence token, which is
    /// put in front of prompts only if the file's post-processor does so. The error holds every problem found.
    pub fn from_json(text: &str, bos: Option<&str>) -> Result<Self, Vec<String>> {
        json::read(text, bos)
    }

    fn new(
        plain: tokenizers::Tokenizer,
        added: Vec<AddedToken>,
        bos: Option<u32>,
    ) -> Result<Self, Vec<String>> {
        let (bytes, mut problems) = TokenBytes::new(&plain, &added)?;
        let special = added
            .iter()
            .filter(|token| token.special)
            .map(|token| token.id)
            .collect();
        let tokenizer = Self {
            plain,
            added: AddedTokens::new(added),
            bytes,
            special,
            bos,
        };
        problems.extend(tokenizer.forgeable());
        if problems.is_empty() {
            Ok(tokenizer)
        } else {
            Err(problems)
        }
    }

    /// Control tokens that plain text can produce, which would let a client write them.
    fn forgeable(&self) -> Vec<String> {
        let forged = |token: &&AddedToken| match self.encode_plain(&token.text) {
            Ok(ids) => ids.contains(&token.id),
            Err(_) => false,
        };
        self.added
            .iter()
            .filter(|token| token.special)
            .filter(forged)
            .map(|token| {
                format!(
                    "control token `{}` is also what plain text encodes to, so a client could write it in a message",
                    token.text
                )
            })
            .collect()
    }

    /// Encodes text whose added tokens are meant, with the beginning-of-sequence token in front if the model wants it.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, EncodeError> {
        self.encode_with_breaks(text, &[])
    }

    /// Encodes what a chat template made: its own control tokens count, those inside clients' strings are text.
    pub fn encode_rendered(&self, rendered: &Rendered) -> Result<Vec<u32>, EncodeError> {
        self.encode_with_breaks(rendered.text(), rendered.breaks())
    }

    /// Encodes text in which nothing is a control token, with nothing in front.
    pub fn encode_plain(&self, text: &str) -> Result<Vec<u32>, EncodeError> {
        let mut ids = Vec::new();
        self.push_plain(text, &mut ids)?;
        Ok(ids)
    }

    fn encode_with_breaks(&self, text: &str, breaks: &[usize]) -> Result<Vec<u32>, EncodeError> {
        let pieces = self.added.split(text, breaks);
        // The template may have written the first token already.
        let bos = self
            .bos
            .filter(|&bos| pieces.first() != Some(&Piece::Token(bos)));
        let mut ids: Vec<u32> = bos.into_iter().collect();
        for piece in pieces {
            match piece {
                Piece::Token(id) => ids.push(id),
                Piece::Text(text) => self.push_plain(text, &mut ids)?,
            }
        }
        Ok(ids)
    }

    fn push_plain(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), EncodeError> {
        let encoding = self
            .plain
            .encode_fast(text, false)
            .map_err(|error| EncodeError(error.to_string()))?;
        ids.extend_from_slice(encoding.get_ids());
        Ok(())
    }

    /// The exact bytes of a token's text; they may be a part of a character. Empty for an id that has no token.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        self.bytes.get(id)
    }

    /// Whether this is a control token, which clients do not see.
    pub fn is_special(&self, id: u32) -> bool {
        self.special.contains(&id)
    }

    /// The id of an added token's text (`<think>`, `<|im_end|>`), or of a vocabulary entry as the model's file
    /// writes it.
    pub fn token_id(&self, text: &str) -> Option<u32> {
        self.added.id(text).or_else(|| self.plain.token_to_id(text))
    }

    /// The id of an added token's text. Not that of a vocabulary entry, which plain text may be encoded to.
    pub fn added_id(&self, text: &str) -> Option<u32> {
        self.added.id(text)
    }

    /// One more than the highest token id. The model's logits may be wider: embedding tables are often padded.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no tokens at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The texts of all control tokens: what a chat template must not let through from a client.
    pub fn control_texts(&self) -> Vec<String> {
        self.added
            .iter()
            .filter(|token| token.special)
            .map(|token| token.text.clone())
            .collect()
    }
}
