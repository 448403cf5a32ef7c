//! How tokens are chosen and what ends an answer.

use serde_json::Value;

use super::reader::Reader;
use super::{Bounds, SamplingWish};

/// Most stop strings; OpenAI takes 4, engines' own clients send more.
const STOP_STRINGS_MAX: usize = 16;
/// Longest stop string, in bytes: the end of the text is held back by as much.
const STOP_BYTES_MAX: usize = 1024;
/// Most stop tokens.
const STOP_TOKENS_MAX: usize = 64;
/// Most alternatives a token.
const TOP_LOGPROBS_MAX: i64 = 20;
/// Largest `top_k`; more than any vocabulary holds.
const TOP_K_MAX: i64 = 1 << 24;

const TEMPERATURE: Bounds = Bounds::closed(0.0, 2.0);
const SHARE: Bounds = Bounds::closed(0.0, 1.0);
const SHARE_NOT_NONE: Bounds = Bounds::above(0.0, 1.0);
const PENALTY: Bounds = Bounds::closed(-2.0, 2.0);
/// A factor on the logits of tokens seen; past ten it means no more than ten does.
const REPETITION: Bounds = Bounds::above(0.0, 10.0);

pub(super) fn read(reader: &mut Reader<'_>) -> SamplingWish {
    SamplingWish {
        temperature: reader.number("temperature", TEMPERATURE),
        top_p: reader.number("top_p", SHARE_NOT_NONE),
        // −1 is the older way to say that all are kept.
        top_k: reader
            .integer("top_k", -1, TOP_K_MAX)
            .map(|k| u32::try_from(k).unwrap_or(0)),
        min_p: reader.number("min_p", SHARE),
        presence_penalty: reader.number("presence_penalty", PENALTY),
        frequency_penalty: reader.number("frequency_penalty", PENALTY),
        repetition_penalty: reader.number("repetition_penalty", REPETITION),
        seed: read_seed(reader),
    }
}

fn read_seed(reader: &mut Reader<'_>) -> Option<u64> {
    let value = reader.value("seed")?;
    let seed = value
        .as_u64()
        .or_else(|| value.as_i64().map(i64::cast_unsigned));
    if seed.is_none() {
        reader.invalid("seed", "a whole number of 64 bits");
    }
    seed
}

pub(super) fn read_stop(reader: &mut Reader<'_>) -> Vec<String> {
    let expected = format!(
        "a string or an array of at most {STOP_STRINGS_MAX} strings, each of 1 to {STOP_BYTES_MAX} bytes"
    );
    let strings: Option<Vec<String>> = match reader.value("stop") {
        None => return Vec::new(),
        Some(Value::String(text)) => Some(vec![text.clone()]),
        Some(Value::Array(items)) if items.len() <= STOP_STRINGS_MAX => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect(),
        Some(_) => None,
    };
    let fits = |text: &String| !text.is_empty() && text.len() <= STOP_BYTES_MAX;
    match strings {
        Some(strings) if strings.iter().all(fits) => strings,
        _ => {
            reader.invalid("stop", &expected);
            Vec::new()
        }
    }
}

pub(super) fn read_stop_ids(reader: &mut Reader<'_>) -> Vec<u32> {
    let Some(value) = reader.value("stop_token_ids") else {
        return Vec::new();
    };
    let ids: Option<Vec<u32>> = value
        .as_array()
        .filter(|ids| ids.len() <= STOP_TOKENS_MAX)
        .and_then(|ids| {
            ids.iter()
                .map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()))
                .collect()
        });
    ids.unwrap_or_else(|| {
        reader.invalid(
            "stop_token_ids",
            &format!("an array of at most {STOP_TOKENS_MAX} token ids"),
        );
        Vec::new()
    })
}

pub(super) fn read_logprobs(reader: &mut Reader<'_>) -> Option<u8> {
    let wanted = reader.boolean("logprobs").unwrap_or(false);
    let top = reader.integer("top_logprobs", 0, TOP_LOGPROBS_MAX);
    if top.is_some_and(|top| top > 0) && !wanted {
        reader.invalid("top_logprobs", "0 unless `logprobs` is true");
    }
    wanted.then(|| top.and_then(|top| u8::try_from(top).ok()).unwrap_or(0))
}
