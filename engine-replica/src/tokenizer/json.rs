//! A vocabulary out of Hugging Face's `tokenizer.json`.

use serde::Deserialize;
use serde_json::Value;

use super::Tokenizer;
use super::added::AddedToken;

/// An entry of `added_tokens`.
#[derive(Deserialize)]
struct Entry {
    id: u32,
    content: String,
    special: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    single_word: bool,
}

pub(super) fn read(text: &str, bos: Option<&str>) -> Result<Tokenizer, Vec<String>> {
    let one = |problem: String| vec![problem];
    let mut json: Value =
        serde_json::from_str(text).map_err(|error| one(format!("is damaged: {error}")))?;
    if !json.is_object() {
        return Err(one("is not a JSON object".to_owned()));
    }
    let model = json["model"]["type"].as_str().unwrap_or("BPE").to_owned();
    if model != "BPE" {
        return Err(one(format!(
            "has a {model} model; this build reads byte-level BPE"
        )));
    }
    if !names_byte_level(&json["pre_tokenizer"]) {
        return Err(one(
            "has a BPE model without a byte-level pre-tokenizer; this build reads byte-level BPE"
                .to_owned(),
        ));
    }
    let entries: Vec<Entry> =
        match std::mem::replace(&mut json["added_tokens"], Value::Array(Vec::new())) {
            Value::Null => Vec::new(),
            list => serde_json::from_value(list)
                .map_err(|error| one(format!("has a damaged `added_tokens`: {error}")))?,
        };
    let post_processor = json["post_processor"].take();
    // Padding and truncation serve batches in training; here they would lose or invent tokens.
    json["padding"].take();
    json["truncation"].take();
    let plain: tokenizers::Tokenizer =
        serde_json::from_value(json).map_err(|error| one(format!("cannot be read: {error}")))?;
    let added = entries
        .into_iter()
        .map(|entry| AddedToken {
            text: entry.content,
            id: entry.id,
            special: entry.special,
            lstrip: entry.lstrip,
            rstrip: entry.rstrip,
            single_word: entry.single_word,
        })
        .collect::<Vec<_>>();
    let bos = bos
        .filter(|bos| begins_with(&post_processor, bos))
        .and_then(|bos| {
            added
                .iter()
                .find(|token| token.text == bos)
                .map(|token| token.id)
        });
    Tokenizer::new(plain, added, bos)
}

fn names_byte_level(pre_tokenizer: &Value) -> bool {
    let is_byte_level = |value: &Value| value["type"] == "ByteLevel";
    let inner = pre_tokenizer["pretokenizers"].as_array();
    is_byte_level(pre_tokenizer) || inner.is_some_and(|inner| inner.iter().any(is_byte_level))
}

/// Whether a post-processor (alone or in a sequence) is a template for single texts that begins with `bos`.
fn begins_with(post_processor: &Value, bos: &str) -> bool {
    let first = &post_processor["single"][0]["SpecialToken"]["id"];
    let inner = post_processor["processors"].as_array();
    first == bos || inner.is_some_and(|inner| inner.iter().any(|inner| begins_with(inner, bos)))
}
