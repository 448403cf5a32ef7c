//! `tokenizer_config.json` and the chat template, which is in it or beside it.

use serde::Deserialize;

use crate::loader::error::LoadError;
use crate::loader::folder::Folder;
use crate::template::{ChatTemplate, SpecialTokens};
use crate::tokenizer::Tokenizer;

/// What this build reads of tokenizer_config.json.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenizerConfig {
    pub(super) bos_token: Option<TokenText>,
    pub(super) eos_token: Option<TokenText>,
    pad_token: Option<TokenText>,
    unk_token: Option<TokenText>,
    chat_template: Option<TemplateText>,
}

/// A token as plain text, or as the object that older files have.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum TokenText {
    Plain(String),
    Object { content: String },
}

impl TokenText {
    pub(super) fn text(&self) -> &str {
        match self {
            TokenText::Plain(text) | TokenText::Object { content: text } => text,
        }
    }
}

/// One template, or several by name of which `default` is meant.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TemplateText {
    One(String),
    Named(Vec<NamedTemplate>),
}

#[derive(Debug, Deserialize)]
struct NamedTemplate {
    name: String,
    template: String,
}

pub(super) fn read_template(
    folder: Folder<'_>,
    config: &TokenizerConfig,
) -> Result<Option<String>, LoadError> {
    if let Some(source) = folder.text("chat_template.jinja")? {
        return Ok(Some(source));
    }
    Ok(match &config.chat_template {
        None => None,
        Some(TemplateText::One(source)) => Some(source.clone()),
        Some(TemplateText::Named(all)) => all
            .iter()
            .find(|named| named.name == "default")
            .map(|named| named.template.clone()),
    })
}

pub(super) fn make_template(
    source: &str,
    config: &TokenizerConfig,
    tokenizer: &Tokenizer,
    problems: &mut Vec<String>,
) -> Option<ChatTemplate> {
    let text = |token: &Option<TokenText>| token.as_ref().map(|token| token.text().to_owned());
    let special = SpecialTokens {
        bos: text(&config.bos_token),
        eos: text(&config.eos_token),
        pad: text(&config.pad_token),
        unk: text(&config.unk_token),
    };
    match ChatTemplate::new(source, special, tokenizer.control_texts()) {
        Ok(template) => Some(template),
        Err(error) => {
            problems.push(error.to_string());
            None
        }
    }
}
