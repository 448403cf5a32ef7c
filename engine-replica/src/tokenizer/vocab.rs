//! A vocabulary out of bare token and merge lists, as GGUF files carry them.

use std::collections::HashMap;

use tokenizers::models::bpe::{BPE, Vocab as Ids};

use super::Tokenizer;
use super::added::AddedToken;
use super::pre;

/// What a GGUF file says of its vocabulary.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocab {
    /// Token texts by id, in the byte-level alphabet.
    pub(crate) tokens: Vec<String>,
    /// Ids of control tokens.
    pub(crate) control: Vec<u32>,
    /// Ids of added tokens that clients may see.
    pub(crate) user_defined: Vec<u32>,
    /// `left right`, most important first.
    pub(crate) merges: Vec<String>,
    /// Name of the pre-tokenizer.
    pub(crate) pre: String,
    /// Beginning-of-sequence token.
    pub(crate) bos: Option<u32>,
    /// Whether prompts begin with it; `None` where the file does not say.
    pub(crate) add_bos: Option<bool>,
}

impl Tokenizer {
    /// Builds a byte-level BPE tokenizer. The error holds every problem found.
    pub(crate) fn from_vocab(vocab: &Vocab) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let recipe = pre::recipe(&vocab.pre)
            .map_err(|problem| problems.push(problem))
            .ok();
        let added = added_tokens(vocab, &mut problems);
        let ids = plain_ids(vocab, &added, &mut problems);
        let merges = merges(vocab, &mut problems);
        let Some(recipe) = recipe.filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        let model = BPE::builder()
            .vocab_and_merges(ids.into_iter().collect::<Ids>(), merges)
            .ignore_merges(recipe.ignore_merges)
            .build()
            .map_err(|error| vec![format!("the vocabulary and its merges do not fit: {error}")])?;
        let mut plain = tokenizers::Tokenizer::new(model);
        plain.with_pre_tokenizer(Some(recipe.pre_tokenizer));
        plain.with_normalizer(recipe.normalizer);
        let bos = vocab
            .bos
            .filter(|_| vocab.add_bos.unwrap_or(recipe.add_bos));
        Tokenizer::new(plain, added, bos)
    }
}

fn added_tokens(vocab: &Vocab, problems: &mut Vec<String>) -> Vec<AddedToken> {
    let control = vocab.control.iter().map(|&id| (id, true));
    let user_defined = vocab.user_defined.iter().map(|&id| (id, false));
    let mut added = Vec::new();
    for (id, special) in control.chain(user_defined) {
        match vocab.tokens.get(id as usize) {
            Some(text) => added.push(AddedToken {
                text: text.clone(),
                id,
                special,
                lstrip: false,
                rstrip: false,
                single_word: false,
            }),
            None => problems.push(format!("token {id} has a type but no text")),
        }
    }
    added
}

/// Tokens that text can merge into: all but the added ones.
fn plain_ids(
    vocab: &Vocab,
    added: &[AddedToken],
    problems: &mut Vec<String>,
) -> HashMap<String, u32> {
    let added: std::collections::HashSet<u32> = added.iter().map(|token| token.id).collect();
    let mut ids = HashMap::new();
    for (id, text) in (0_u32..).zip(&vocab.tokens) {
        if added.contains(&id) {
            continue;
        }
        if let Some(other) = ids.insert(text.clone(), id) {
            problems.push(format!(
                "tokens {other} and {id} have the same text `{text}`"
            ));
        }
    }
    ids
}

fn merges(vocab: &Vocab, problems: &mut Vec<String>) -> Vec<(String, String)> {
    let mut pairs = Vec::with_capacity(vocab.merges.len());
    for merge in &vocab.merges {
        // Neither half can hold a space: the alphabet writes it as another character.
        match merge.split_once(' ') {
            Some((left, right)) if !left.is_empty() && !right.is_empty() => {
                pairs.push((left.to_owned(), right.to_owned()));
            }
            _ => problems.push(format!(
                "merge `{merge}` is not two tokens with a space between"
            )),
        }
    }
    pairs
}
