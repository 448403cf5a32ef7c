//! Finding added tokens (`<|im_start|>`, `<think>`) in text.

use std::collections::HashMap;

/// A token that is found in text as it stands, before any splitting into words.
#[derive(Clone, Debug)]
pub(super) struct AddedToken {
    pub(super) text: String,
    pub(super) id: u32,
    /// A control token: never shown to clients, never taken from their text.
    pub(super) special: bool,
    /// Takes the white space before it along.
    pub(super) lstrip: bool,
    /// Takes the white space after it along.
    pub(super) rstrip: bool,
    /// Counts only where no word goes on at either side.
    pub(super) single_word: bool,
}

/// All added tokens of a vocabulary.
#[derive(Debug)]
pub(super) struct AddedTokens {
    tokens: Vec<AddedToken>,
    /// Indices into `tokens` by first byte, longest text first.
    by_first: HashMap<u8, Vec<usize>>,
    by_text: HashMap<String, u32>,
}

/// A stretch of text, or a token found in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Never empty.
    Text(&'t str),
    Token(u32),
}

impl AddedTokens {
    /// Tokens with empty text are left out: they would be found everywhere.
    pub(super) fn new(mut tokens: Vec<AddedToken>) -> Self {
        tokens.retain(|token| !token.text.is_empty());
        let mut by_first: HashMap<u8, Vec<usize>> = HashMap::new();
        for (index, token) in tokens.iter().enumerate() {
            by_first
                .entry(token.text.as_bytes()[0])
                .or_default()
                .push(index);
        }
        for indices in by_first.values_mut() {
            indices.sort_by_key(|&index| std::cmp::Reverse(tokens[index].text.len()));
        }
        let by_text = tokens
            .iter()
            .map(|token| (token.text.clone(), token.id))
            .collect();
        Self {
            tokens,
            by_first,
            by_text,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &AddedToken> {
        self.tokens.iter()
    }

    pub(super) fn id(&self, text: &str) -> Option<u32> {
        self.by_text.get(text).copied()
    }

    /// Cuts text into tokens and what lies between; the first and longest match counts. No token begins at a byte
    /// position in `breaks` (ascending).
    pub(super) fn split<'t>(&self, text: &'t str, breaks: &[usize]) -> Vec<Piece<'t>> {
        let mut pieces = Vec::new();
        let mut text_from = 0;
        let mut at = 0;
        while let Some(&first) = text.as_bytes().get(at) {
            let found = self.by_first.get(&first).and_then(|candidates| {
                let longest = self.longest_at(text, at, candidates)?;
                breaks.binary_search(&at).is_err().then_some(longest)
            });
            let Some(token) = found else {
                at += 1;
                continue;
            };
            let mut from = at;
            let mut until = at + token.text.len();
            if token.lstrip {
                from = text_from + text[text_from..from].trim_end().len();
            }
            if token.rstrip {
                until = text.len() - text[until..].trim_start().len();
            }
            if from > text_from {
                pieces.push(Piece::Text(&text[text_from..from]));
            }
            pieces.push(Piece::Token(token.id));
            text_from = until;
            at = until;
        }
        if text_from < text.len() {
            pieces.push(Piece::Text(&text[text_from..]));
        }
        pieces
    }

    fn longest_at(&self, text: &str, at: usize, candidates: &[usize]) -> Option<&AddedToken> {
        // A token's first byte is never in the middle of a character, so `at` is a boundary wherever a text matches.
        let rest = text.as_bytes().get(at..)?;
        candidates
            .iter()
            .map(|&index| &self.tokens[index])
            .find(|token| rest.starts_with(token.text.as_bytes()) && stands_alone(token, text, at))
    }
}

fn stands_alone(token: &AddedToken, text: &str, at: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let before = text[..at].chars().next_back();
    let after = text[at + token.text.len()..].chars().next();
    !token.single_word || !(before.is_some_and(is_word) || after.is_some_and(is_word))
}
