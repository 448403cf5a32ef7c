//! The vocabulary, chat template and end tokens that a GGUF file carries.

use super::value::Metadata;
use crate::template::{ChatTemplate, SpecialTokens};
use crate::tokenizer::{Tokenizer, Vocab};

/// Token types of GGML that matter here; 1 is a normal token, 5 an unused one, 6 a byte of other vocabularies.
const TYPE_CONTROL: i128 = 3;
const TYPE_USER_DEFINED: i128 = 4;

/// Control tokens that end an answer under whatever key the converter put them, or none: chat models end a turn with
/// one and a text with another, and files name only one of the two.
const END_TEXTS: [&str; 7] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "</s>",
];

/// The tokenizer, the chat template, and the end tokens (sorted).
pub(super) fn read(
    metadata: &Metadata,
    vocab_rows: usize,
    problems: &mut Vec<String>,
) -> Option<(Tokenizer, ChatTemplate, Vec<u32>)> {
    let vocab = read_vocab(metadata, problems)?;
    if vocab.tokens.len() > vocab_rows {
        problems.push(format!(
            "the vocabulary has {} tokens where the embedding table has {vocab_rows} rows",
            vocab.tokens.len()
        ));
    }
    let eos = end_tokens(metadata, &vocab, problems);
    let tokenizer = Tokenizer::from_vocab(&vocab)
        .map_err(|more| problems.extend(more))
        .ok()?;
    let text = |key: &str| {
        let id = metadata.token(key).ok().flatten()?;
        vocab.tokens.get(id as usize).cloned()
    };
    let special = SpecialTokens {
        bos: text("tokenizer.ggml.bos_token_id"),
        eos: text("tokenizer.ggml.eos_token_id"),
        pad: text("tokenizer.ggml.padding_token_id"),
        unk: text("tokenizer.ggml.unknown_token_id"),
    };
    let Some(source) = or_problem(metadata.text("tokenizer.chat_template"), problems) else {
        problems.push(
            "has no `tokenizer.chat_template`; use an instruction-tuned model's file".to_owned(),
        );
        return None;
    };
    match ChatTemplate::new(source, special, tokenizer.control_texts()) {
        Ok(template) => Some((tokenizer, template, eos)),
        Err(error) => {
            problems.push(error.to_string());
            None
        }
    }
}

fn read_vocab(metadata: &Metadata, problems: &mut Vec<String>) -> Option<Vocab> {
    let model = or_problem(metadata.text("tokenizer.ggml.model"), problems);
    if model != Some("gpt2") {
        problems.push(format!(
            "`tokenizer.ggml.model` is `{}`, expected `gpt2` (byte-level BPE); this build reads no other vocabulary",
            model.unwrap_or("missing")
        ));
        return None;
    }
    let mut need = |key: &str, present: bool| {
        if !present {
            problems.push(format!(
                "`{key}` is missing; convert the model again with a current llama.cpp"
            ));
        }
    };
    for key in [
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.merges",
        "tokenizer.ggml.pre",
    ] {
        need(key, metadata.0.contains_key(key));
    }
    let tokens = or_problem(metadata.texts("tokenizer.ggml.tokens"), problems)?;
    let types =
        or_problem(metadata.integers("tokenizer.ggml.token_type"), problems).unwrap_or_default();
    if !types.is_empty() && types.len() != tokens.len() {
        problems.push(format!(
            "{} tokens have {} types",
            tokens.len(),
            types.len()
        ));
    }
    let of_type = |wanted: i128| -> Vec<u32> {
        (0_u32..)
            .zip(&types)
            .filter(|&(_, &kind)| kind == wanted)
            .map(|(id, _)| id)
            .collect()
    };
    Some(Vocab {
        control: of_type(TYPE_CONTROL),
        user_defined: of_type(TYPE_USER_DEFINED),
        tokens,
        merges: or_problem(metadata.texts("tokenizer.ggml.merges"), problems)?,
        pre: or_problem(metadata.text("tokenizer.ggml.pre"), problems)?.to_owned(),
        bos: or_problem(metadata.token("tokenizer.ggml.bos_token_id"), problems),
        add_bos: or_problem(metadata.bool("tokenizer.ggml.add_bos_token"), problems),
    })
}

fn end_tokens(metadata: &Metadata, vocab: &Vocab, problems: &mut Vec<String>) -> Vec<u32> {
    let mut all: Vec<u32> = Vec::new();
    for key in ["eos_token_id", "eot_token_id", "eom_token_id"] {
        all.extend(or_problem(
            metadata.token(&format!("tokenizer.ggml.{key}")),
            problems,
        ));
    }
    all.extend(vocab.control.iter().filter(|&&id| {
        vocab
            .tokens
            .get(id as usize)
            .is_some_and(|text| END_TEXTS.contains(&text.as_str()))
    }));
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        problems.push("names no end token; expected `tokenizer.ggml.eos_token_id`".to_owned());
    }
    for &id in all.iter().filter(|&&id| id as usize >= vocab.tokens.len()) {
        problems.push(format!(
            "names the end token {id} of a vocabulary of {}",
            vocab.tokens.len()
        ));
    }
    all
}

fn or_problem<T>(result: Result<Option<T>, String>, problems: &mut Vec<String>) -> Option<T> {
    result.unwrap_or_else(|problem| {
        problems.push(problem);
        None
    })
}
