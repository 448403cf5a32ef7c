//! Hugging Face folders: config.json, tokenizer.json, tokenizer_config.json, generation_config.json, safetensors.

mod chat;
mod config;
mod files;
mod header;
mod sampling;

#[cfg(test)]
mod tests;

use serde::de::DeserializeOwned;

use self::chat::{TokenText, TokenizerConfig, make_template, read_template};
use self::config::Config;
use self::sampling::GenerationConfig;
use super::error::LoadError;
use super::fingerprint::Fingerprint;
use super::folder::Folder;
use super::{Checkpoint, Weights, shape};
use crate::tokenizer::Tokenizer;

pub(super) fn open(folder: Folder<'_>) -> Result<Checkpoint, LoadError> {
    let (weights, config) = open_parts(folder)?;
    let tokenizer_json = required_file(folder, "tokenizer.json")?;
    let tokenizer_config: TokenizerConfig =
        parse_file(folder, "tokenizer_config.json")?.unwrap_or_default();
    let generation: GenerationConfig =
        parse_file(folder, "generation_config.json")?.unwrap_or_default();

    let bos = tokenizer_config.bos_token.as_ref().map(TokenText::text);
    let tokenizer = Tokenizer::from_json(&tokenizer_json, bos)
        .map_err(|problems| LoadError::new(&folder.path().join("tokenizer.json"), problems))?;
    let mut problems = Vec::new();
    let tokens = tokenizer.len();
    if tokens > weights.config.vocab {
        problems.push(format!(
            "tokenizer.json has {tokens} tokens where the embedding table has {} rows",
            weights.config.vocab
        ));
    }
    let eos = eos_tokens(
        &config,
        &generation,
        &tokenizer_config,
        &tokenizer,
        weights.config.vocab,
        &mut problems,
    );
    let template = read_template(folder, &tokenizer_config)?
        .and_then(|source| make_template(&source, &tokenizer_config, &tokenizer, &mut problems));
    if template.is_none() && problems.is_empty() {
        problems.push(
            "has no chat template; put chat_template.jinja beside config.json or `chat_template` into \
             tokenizer_config.json"
                .to_owned(),
        );
    }
    match template {
        Some(template) if problems.is_empty() => Ok(Checkpoint {
            name: folder.name(),
            weights,
            tokenizer,
            template,
            eos,
            generation: generation.defaults(),
        }),
        _ => Err(LoadError::new(folder.path(), problems)),
    }
}

pub(super) fn open_weights(folder: Folder<'_>) -> Result<Weights, LoadError> {
    open_parts(folder).map(|(weights, _)| weights)
}

fn open_parts(folder: Folder<'_>) -> Result<(Weights, Config), LoadError> {
    let mut problems = Vec::new();
    let mut fingerprint = Fingerprint::new();
    let text = required_file(folder, "config.json")?;
    fingerprint.add(text.as_bytes(), text.len());
    let config: Config = serde_json::from_str(&text).map_err(|error| {
        LoadError::one(
            &folder.path().join("config.json"),
            format!("is damaged: {error}"),
        )
    })?;
    let model = config.model(&mut problems);
    let model = match model {
        Some(model) if problems.is_empty() => model,
        _ => return Err(LoadError::new(folder.path(), problems)),
    };
    shape::check_config(&model, &mut problems);
    if !problems.is_empty() {
        return Err(LoadError::new(folder.path(), problems));
    }
    let tensors = files::open(folder, &mut fingerprint, &mut problems)?;
    if problems.is_empty() {
        shape::check_tensors(&model, &tensors, &mut problems);
    }
    if !problems.is_empty() {
        return Err(LoadError::new(folder.path(), problems));
    }
    Ok((
        Weights {
            config: model,
            tensors,
            fingerprint: fingerprint.finish(),
        },
        config,
    ))
}

/// The union of what the three files say: chat models often name the turn's end in one and the text's in another.
fn eos_tokens(
    config: &Config,
    generation: &GenerationConfig,
    tokenizer_config: &TokenizerConfig,
    tokenizer: &Tokenizer,
    vocab: usize,
    problems: &mut Vec<String>,
) -> Vec<u32> {
    let by_text = tokenizer_config
        .eos_token
        .as_ref()
        .and_then(|eos| tokenizer.token_id(eos.text()));
    let mut all: Vec<u32> = [&config.eos_token_id, &generation.eos_token_id]
        .into_iter()
        .flatten()
        .flat_map(|ids| ids.clone().into_vec())
        .chain(by_text)
        .collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        problems
            .push("names no end token; set `eos_token_id` in generation_config.json".to_owned());
    }
    for &id in all.iter().filter(|&&id| id as usize >= vocab) {
        problems.push(format!(
            "names the end token {id} of a vocabulary of {vocab}"
        ));
    }
    all
}

fn required_file(folder: Folder<'_>, name: &str) -> Result<String, LoadError> {
    folder.text(name)?.ok_or_else(|| {
        LoadError::one(
            folder.path(),
            format!("holds no {name}, which a Hugging Face folder must have"),
        )
    })
}

fn parse_file<T: DeserializeOwned>(folder: Folder<'_>, name: &str) -> Result<Option<T>, LoadError> {
    folder
        .text(name)?
        .map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|error| LoadError::one(&folder.path().join(name), format!("is damaged: {error}")))
}
