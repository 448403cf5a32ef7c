//! Every top-level field of a chat request that this API has heard of, and what becomes of it.
//!
//! Nothing is ignored in silence: a field is read, or is harmless and listed here, or is refused by name. A refused
//! field is let through when it holds the value that means "as if absent", because many client libraries send those.

use serde_json::Value;

use super::nearest::nearest;
use super::reader::{Problems, Reader};
use crate::failure::ProblemCode;

/// Fields that `parse` reads.
const READ: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "seed",
    "stop",
    "stop_token_ids",
    "ignore_eos",
    "min_tokens",
    "max_tokens",
    "max_completion_tokens",
    "thinking_token_budget",
    "min_thinking_tokens",
    "logprobs",
    "top_logprobs",
    "cache_salt",
    "chat_template_kwargs",
    "add_generation_prompt",
];

/// Fields that say something about the caller, not about the answer: any value is let through and none is used.
const HARMLESS: &[&str] = &[
    "user",
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "session_id",
    "conversation",
    "previous_response_id",
    "request_id",
];

/// A field that is refused unless it holds one of the values that change nothing, given as JSON.
struct Refused {
    name: &'static str,
    neutral: &'static [&'static str],
    instead: &'static str,
}

const fn refused(
    name: &'static str,
    neutral: &'static [&'static str],
    instead: &'static str,
) -> Refused {
    Refused {
        name,
        neutral,
        instead,
    }
}

const NOT_YET: &str = "not there yet; leave it out";
const TOOLS: &str = "tools are not there yet; leave the field out";
const STRUCTURED: &str = "structured output is not there yet; leave the field out";
const REASONING: &str = "reasoning is controlled by the template's own switch in `chat_template_kwargs` and by \
                         `thinking_token_budget`; send those instead";
const BUDGET: &str = "this is `thinking_token_budget` here; send that instead";
const TEXT_ONLY: &str = "this model reads and writes text only";

const REFUSED: &[Refused] = &[
    refused(
        "n",
        &["1"],
        "one answer a request; send the request again for another",
    ),
    refused(
        "best_of",
        &["1"],
        "one answer a request; send the request again for another",
    ),
    refused("tools", &["[]"], TOOLS),
    refused("tool_choice", &["\"none\"", "\"auto\""], TOOLS),
    refused("parallel_tool_calls", &["true", "false"], TOOLS),
    refused("functions", &["[]"], TOOLS),
    refused("function_call", &["\"none\"", "\"auto\""], TOOLS),
    refused("response_format", &["{\"type\":\"text\"}"], STRUCTURED),
    refused("structured_outputs", &["{}"], STRUCTURED),
    refused("guided_json", &[], STRUCTURED),
    refused("guided_regex", &[], STRUCTURED),
    refused("guided_choice", &[], STRUCTURED),
    refused("guided_grammar", &[], STRUCTURED),
    refused("guided_decoding_backend", &[], STRUCTURED),
    refused("guided_whitespace_pattern", &[], STRUCTURED),
    refused("structural_tag", &[], STRUCTURED),
    refused("grammar", &[], STRUCTURED),
    refused("json_schema", &[], STRUCTURED),
    refused("reasoning", &["{}"], REASONING),
    refused("reasoning_effort", &[], REASONING),
    refused("include_reasoning", &["true"], REASONING),
    refused("separate_reasoning", &["true"], REASONING),
    refused("thinking", &["{}"], REASONING),
    refused("thinking_budget_tokens", &["-1"], BUDGET),
    refused("reasoning_budget_tokens", &["-1"], BUDGET),
    refused("max_thinking_tokens", &[], BUDGET),
    refused("enable_thinking", &[], REASONING),
    refused("modalities", &["[\"text\"]"], TEXT_ONLY),
    refused("audio", &[], TEXT_ONLY),
    refused("mm_processor_kwargs", &["{}"], TEXT_ONLY),
    refused("logit_bias", &["{}"], NOT_YET),
    refused("prompt_logprobs", &["0"], NOT_YET),
    refused("prediction", &[], NOT_YET),
    refused("verbosity", &["\"medium\""], NOT_YET),
    refused(
        "web_search_options",
        &[],
        "this server searches nothing; leave it out",
    ),
    refused("store", &["false"], "nothing is stored here; leave it out"),
    refused(
        "service_tier",
        &["\"auto\"", "\"default\""],
        "there is one tier; leave it out",
    ),
    refused("priority", &["0"], NOT_YET),
    refused("use_beam_search", &["false"], NOT_YET),
    refused("length_penalty", &["1"], NOT_YET),
    refused("typical_p", &["1"], NOT_YET),
    refused("top_a", &["0"], NOT_YET),
    refused("mirostat", &["0"], NOT_YET),
    refused("bad_words", &["[]"], NOT_YET),
    refused("allowed_token_ids", &["[]"], NOT_YET),
    refused("include_stop_str_in_output", &["false"], NOT_YET),
    refused("skip_special_tokens", &["true"], NOT_YET),
    refused("spaces_between_special_tokens", &["true"], NOT_YET),
    refused(
        "truncate_prompt_tokens",
        &["-1"],
        "nothing is cut off in silence; shorten the messages",
    ),
    refused("echo", &["false"], NOT_YET),
    refused("continue_final_message", &["false"], NOT_YET),
    refused(
        "add_special_tokens",
        &["false"],
        "the chat template adds them; leave it out",
    ),
    refused("documents", &["[]"], NOT_YET),
    refused(
        "chat_template",
        &[],
        "the model's own template is used; leave it out",
    ),
    refused("return_tokens_as_token_ids", &["false"], NOT_YET),
    refused("return_token_ids", &["false"], NOT_YET),
    refused("return_hidden_states", &["false"], NOT_YET),
    refused("logits_processors", &["[]"], NOT_YET),
    refused("custom_logit_processor", &[], NOT_YET),
    refused("custom_params", &["{}"], NOT_YET),
    refused("kv_transfer_params", &["{}"], NOT_YET),
    refused("vllm_xargs", &["{}"], NOT_YET),
    refused("lora_path", &[], NOT_YET),
    refused(
        "id_slot",
        &["-1"],
        "the prefix cache places requests; leave it out",
    ),
    refused(
        "cache_prompt",
        &["true"],
        "the prefix cache is for the whole replica; leave it out",
    ),
];

/// Notes every field that is refused or unknown.
pub(super) fn check_names(reader: &mut Reader<'_>, names: impl Iterator<Item = String>) {
    for name in names {
        let name = name.as_str();
        if READ.contains(&name) || HARMLESS.contains(&name) {
            continue;
        }
        let Some(value) = reader.value(name) else {
            continue_unknown(reader, name);
            continue;
        };
        match REFUSED.iter().find(|row| row.name == name) {
            Some(row) if row.neutral.iter().any(|neutral| means(value, neutral)) => {}
            Some(row) => reader.problems.unsupported(name, value, row.instead),
            None => unknown(reader.problems, name),
        }
    }
}

/// A null field is as good as absent where the name is known, and still a mistake where it is not.
fn continue_unknown(reader: &mut Reader<'_>, name: &str) {
    if !REFUSED.iter().any(|row| row.name == name) {
        unknown(reader.problems, name);
    }
}

fn unknown(problems: &mut Problems, name: &str) {
    let known = READ
        .iter()
        .chain(HARMLESS)
        .copied()
        .chain(REFUSED.iter().map(|row| row.name));
    let hint = match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "leave it out".to_owned(),
    };
    let message = format!("unknown field `{name}`; {hint}");
    problems.push(name.to_owned(), ProblemCode::UnknownParameter, message);
}

/// Whether a value is the one written as JSON in the table; `1` and `1.0` are the same number.
fn means(value: &Value, neutral: &str) -> bool {
    let Ok(neutral) = serde_json::from_str::<Value>(neutral) else {
        return false;
    };
    match (value.as_f64(), neutral.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => *value == neutral,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_neutral_value_is_json_and_no_field_is_listed_twice() {
        let mut names: Vec<&str> = READ.iter().chain(HARMLESS).copied().collect();
        for row in REFUSED {
            names.push(row.name);
            for neutral in row.neutral {
                assert!(
                    serde_json::from_str::<Value>(neutral).is_ok(),
                    "{}: {neutral}",
                    row.name
                );
            }
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
