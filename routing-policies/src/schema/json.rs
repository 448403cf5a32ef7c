//! The policy file's JSON Schema, by which editors complete and check it.

use super::models::MODEL_NAME_BYTES_MAX;
use super::spec::{Key, Kind, NAMES_MAX, SECTIONS, Spec, THOUSAND, VERSION, VERSION_SAYS, quoted};
use super::table_spec::{LANES, POOLS, RULES, Table};
use crate::lanes::TABLES_MAX;
use crate::models::{Reasoning, ReasoningField, THINKING_TOKENS_MAX};
use crate::policy::Policy;

/// The JSON Schema (draft 7, which TOML editors read) of the policy file, with a line break at its end. It says what each key may say,
/// its default, and what it is for. What only this crate can check is left to `gateway policy check`.
#[must_use]
pub fn json_schema() -> String {
    let default = Policy::default();
    let sections: Vec<String> = SECTIONS
        .iter()
        .map(|spec| section(spec, &default))
        .collect();
    format!(
        r#"{{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "Pinion routing policy",
  "type": "object",
  "additionalProperties": false,
  "required": ["version"],
  "properties": {{
    "version": {{
      "description": {},
      "const": {VERSION}
    }},
{}
  }}
}}
"#,
        quoted(VERSION_SAYS),
        [sections, tables().into(), vec![models()]]
            .concat()
            .join(",\n")
    )
}

/// The tables that a file may repeat.
fn tables() -> [String; 3] {
    [table(&POOLS), table(&LANES), table(&RULES)]
}

fn table<R>(table: &Table<R>) -> String {
    let keys: Vec<String> = table
        .keys
        .iter()
        .map(|key| format!("          {}: {}", quoted(key.name), key.kind.schema()))
        .collect();
    let needed = table.keys.iter().filter(|key| key.needed);
    let needed: Vec<String> = needed.map(|key| quoted(key.name)).collect();
    format!(
        r#"    "{}": {{
      "description": {},
      "type": "array",
      "maxItems": {TABLES_MAX},
      "items": {{
        "type": "object",
        "additionalProperties": false,
        "required": [{}],
        "properties": {{
{}
        }}
      }}
    }}"#,
        table.name,
        quoted(table.says),
        needed.join(", "),
        keys.join(",\n")
    )
}

/// `[[models]]` and `[[families]]`.
fn models() -> String {
    let words = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        format!("{{ \"enum\": [{}] }}", words.join(", "))
    };
    let shown = words(&Reasoning::WORDS.map(|(word, _)| word));
    let field = words(&ReasoningField::WORDS.map(|(word, _)| word));
    let models = format!(
        r#"          "name": {{ "type": "string", "minLength": 1, "maxLength": {MODEL_NAME_BYTES_MAX} }},
          "family": {{ "type": "string" }},
          "reasoning": {shown},
          "reasoning_field": {field},
          "thinking": {{ "type": "boolean" }},
          "thinking_tokens_max": {{ "type": "integer", "minimum": 0, "maximum": {THINKING_TOKENS_MAX} }}"#
    );
    let family = r#"          "name": { "type": "string" }"#;
    let table = |name: &str, says: &str, closed: &str, keys: &str| {
        format!(
            r#"    "{name}": {{
      "description": {},
      "type": "array",
      "maxItems": {TABLES_MAX},
      "items": {{
        "type": "object",
        "additionalProperties": {closed},
        "required": ["name"],
        "properties": {{
{keys}
        }}
      }}
    }}"#,
            quoted(says)
        )
    };
    [
        table("models", "What clients are shown of a model's reasoning, and how much it may think. The first whose name, in which * is any text, fits the model counts.", "false", &models),
        table("families", "How models mark their reasoning, in place of the gateway's own table or beside it; the keys are those of gateway/wire/families.toml.", "true", family),
    ]
    .join(",\n")
}

fn section(spec: &Spec, default: &Policy) -> String {
    let keys: Vec<String> = spec.keys.iter().map(|known| key(known, default)).collect();
    format!(
        r#"    "{}": {{
      "description": {},
      "type": "object",
      "additionalProperties": false,
      "properties": {{
{}
      }}
    }}"#,
        spec.name,
        quoted(spec.says),
        keys.join(",\n")
    )
}

fn key(key: &Key, default: &Policy) -> String {
    let kind = match key.kind {
        Kind::Flag => r#""type": "boolean""#.to_owned(),
        Kind::Count { least, most, .. } => {
            format!(r#""type": "integer", "minimum": {least}, "maximum": {most}"#)
        }
        Kind::Decimal { least, most } => {
            let (least, most) = (f64::from(least) / THOUSAND, f64::from(most) / THOUSAND);
            format!(
                r#""type": "number", "minimum": {least:?}, "maximum": {most:?}, "multipleOf": 0.001"#
            )
        }
        Kind::Names { schema, .. } => format!(
            r#""type": "array", "maxItems": {NAMES_MAX}, "uniqueItems": true, "items": {}"#,
            schema()
        ),
    };
    format!(
        r#"        "{}": {{
          "description": {},
          {kind},
          "default": {}
        }}"#,
        key.name,
        quoted(key.says),
        (key.value)(default)
    )
}
