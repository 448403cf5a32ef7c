//! The policy file's JSON Schema, by which editors complete and check it.

use super::models::MODEL_NAME_BYTES_MAX;
use super::spec::{Key, Kind, NAMES_MAX, SECTIONS, Spec, THOUSAND, VERSION, VERSION_SAYS, quoted};
use super::tables::{NAME_CHARS_MAX, POOL_REPLICAS_MAX};
use crate::lanes::{CONDITION_BYTES_MAX, TABLES_MAX};
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
        [sections.join(",\n"), tables(), models()].join(",\n")
    )
}

/// A table's name, what it is for, its keys with what they may say, and those that have to be there.
type Table<'s> = (&'s str, &'s str, &'s [(&'s str, &'s str)], &'s str);

/// The tables that a file may repeat.
fn tables() -> String {
    let name =
        format!(r#"{{ "type": "string", "pattern": "^[A-Za-z0-9._-]{{1,{NAME_CHARS_MAX}}}$" }}"#);
    let replicas = format!(
        r#"{{ "type": "array", "minItems": 1, "maxItems": {POOL_REPLICAS_MAX}, "uniqueItems": true, "items": {{ "type": "string" }} }}"#
    );
    let when = format!(r#"{{ "type": "string", "maxLength": {CONDITION_BYTES_MAX} }}"#);
    let tables: [Table<'_>; 3] = [
        (
            "pools",
            "Replicas under one name, by the names that the gateway's configuration gives them.",
            &[("name", &name), ("replicas", &replicas)],
            r#""name", "replicas""#,
        ),
        (
            "lanes",
            "Ways that requests take. The first one takes what no rule claims; a lane without a pool may go to all replicas.",
            &[("name", &name), ("pool", &name)],
            r#""name""#,
        ),
        (
            "rules",
            "Which requests take which lane: the first rule whose condition, a CEL expression over `request`, holds.",
            &[("name", &name), ("when", &when), ("lane", &name)],
            r#""name", "when", "lane""#,
        ),
    ];
    let table = |(name, says, keys, required): Table<'_>| {
        let keys: Vec<String> = keys
            .iter()
            .map(|(key, kind)| format!("          \"{key}\": {kind}"))
            .collect();
        format!(
            r#"    "{name}": {{
      "description": {},
      "type": "array",
      "maxItems": {TABLES_MAX},
      "items": {{
        "type": "object",
        "additionalProperties": false,
        "required": [{required}],
        "properties": {{
{}
        }}
      }}
    }}"#,
            quoted(says),
            keys.join(",\n")
        )
    };
    tables.map(table).join(",\n")
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
