//! The policy file's JSON Schema, by which editors complete and check it.

use super::models::FAMILIES;
use super::spec::{Key, Kind, NAMES_MAX, SECTIONS, Spec, THOUSAND, VERSION, VERSION_SAYS, quoted};
use super::table_spec::{LANES, MODELS, POOLS, RULES, Table};
use crate::lanes::TABLES_MAX;
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
        [sections, tables().into(), vec![families()]]
            .concat()
            .join(",\n")
    )
}

/// The tables that a file may repeat.
fn tables() -> [String; 4] {
    [table(&POOLS), table(&LANES), table(&RULES), table(&MODELS)]
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

/// `[[families]]`, of which only the name is checked here.
fn families() -> String {
    let says = "How models mark their reasoning, in place of the gateway's own table or beside it; the keys are those of gateway/wire/families.toml.";
    format!(
        r#"    "{FAMILIES}": {{
      "description": {},
      "type": "array",
      "maxItems": {TABLES_MAX},
      "items": {{
        "type": "object",
        "additionalProperties": true,
        "required": ["name"],
        "properties": {{
          "name": {{ "type": "string" }}
        }}
      }}
    }}"#,
        quoted(says)
    )
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
