//! `[[models]]` and `[[families]]`.

use toml::de::DeValue;

use super::reader::{Reader, Section};
use super::spec::quoted;
use crate::models::{FamilyRow, ModelRule, Models, Reasoning, ReasoningField, THINKING_TOKENS_MAX};
use crate::nearest::nearest;

/// Longest name of a model or family, in bytes.
pub(super) const MODEL_NAME_BYTES_MAX: usize = 256;

/// The tables' names, in the order of documents.
pub(super) const TABLES: [&str; 2] = ["models", "families"];

const KEYS: [&str; 6] = [
    "name",
    "family",
    "reasoning",
    "reasoning_field",
    "thinking",
    "thinking_tokens_max",
];

/// Both.
pub(super) fn models(reader: &mut Reader<'_>, root: &Section<'_>) -> Models {
    Models {
        rules: rules(reader, root),
        families: families(reader, root),
    }
}

fn rules(reader: &mut Reader<'_>, root: &Section<'_>) -> Vec<ModelRule> {
    let mut rules: Vec<ModelRule> = Vec::new();
    for table in reader.sections(root, "models") {
        reader.keys(&table, &KEYS);
        let name = model_name(reader, &table, |name| {
            rules.iter().any(|rule| rule.name == name)
        });
        let family = reader.text(&table, "family");
        let rule = ModelRule {
            name: name.unwrap_or_default(),
            family: family.map(|(family, _)| family),
            reasoning: reader.word(&table, "reasoning", &Reasoning::WORDS),
            field: reader.word(&table, "reasoning_field", &ReasoningField::WORDS),
            thinking: reader.switch(&table, "thinking"),
            thinking_tokens_max: reader.tokens(&table, "thinking_tokens_max"),
        };
        if !rule.name.is_empty() {
            rules.push(rule);
        }
    }
    rules
}

fn families(reader: &mut Reader<'_>, root: &Section<'_>) -> Vec<FamilyRow> {
    let mut families: Vec<FamilyRow> = Vec::new();
    for table in reader.sections(root, "families") {
        let name = model_name(reader, &table, |name| {
            families.iter().any(|family| family.name == name)
        });
        let members: Vec<String> = table
            .table
            .iter()
            .map(|(key, value)| format!("{}: {}", quoted(key.get_ref()), json_of(value.get_ref())))
            .collect();
        families.extend(name.map(|name| FamilyRow {
            name,
            says: format!("{{{}}}", members.join(", ")),
        }));
    }
    families
}

fn model_name(
    reader: &mut Reader<'_>,
    table: &Section<'_>,
    taken: impl Fn(&str) -> bool,
) -> Option<String> {
    if !table.has("name") {
        reader.add(table.at, format!("`{}` is missing", table.path_of("name")));
    }
    let (name, span) = reader.text(table, "name")?;
    let expected = if name.is_empty() || name.len() > MODEL_NAME_BYTES_MAX {
        format!("a name of 1 to {MODEL_NAME_BYTES_MAX} bytes")
    } else if taken(&name) {
        "each name once".to_owned()
    } else {
        return Some(name);
    };
    reader.wrong(&table.path_of("name"), span, &expected);
    None
}

impl Reader<'_> {
    /// One of a few words; the default where the key is absent or wrong.
    fn word<T: Copy + Default>(
        &mut self,
        table: &Section<'_>,
        key: &str,
        words: &[(&'static str, T)],
    ) -> T {
        let Some((text, span)) = self.text(table, key) else {
            return T::default();
        };
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let expected = match nearest(&text, &all) {
                Some(near) => format!("one of `{}`; did you mean `{near}`?", all.join("`, `")),
                None => format!("one of `{}`", all.join("`, `")),
            };
            self.wrong(&table.path_of(key), span, &expected);
        }
        found.map_or_else(T::default, |(_, value)| *value)
    }

    fn switch(&mut self, table: &Section<'_>, key: &str) -> Option<bool> {
        let value = table.table.get(key)?;
        let switch = value.get_ref().as_bool();
        if switch.is_none() {
            self.wrong(&table.path_of(key), value.span(), "`true` or `false`");
        }
        switch
    }

    fn tokens(&mut self, table: &Section<'_>, key: &str) -> Option<u32> {
        let value = table.table.get(key)?;
        let number = match value.get_ref() {
            DeValue::Integer(digits) => u32::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        };
        let number = number.filter(|number| *number <= THINKING_TOKENS_MAX);
        if number.is_none() {
            let expected = format!("a whole number of tokens from 0 to {THINKING_TOKENS_MAX}");
            self.wrong(&table.path_of(key), value.span(), &expected);
        }
        number
    }
}

/// The rule as `policy diff` shows it.
pub(super) fn rule_json(rule: &ModelRule) -> String {
    let mut members = vec![format!("\"name\": {}", quoted(&rule.name))];
    members.extend(
        rule.family
            .iter()
            .map(|family| format!("\"family\": {}", quoted(family))),
    );
    members.push(format!(
        "\"reasoning\": {}",
        quoted(rule.reasoning.as_str())
    ));
    let field = quoted(rule.field.as_str());
    members.push(format!("\"reasoning_field\": {field}"));
    members.extend(
        rule.thinking
            .iter()
            .map(|thinking| format!("\"thinking\": {thinking}")),
    );
    members.extend(
        rule.thinking_tokens_max
            .iter()
            .map(|tokens| format!("\"thinking_tokens_max\": {tokens}")),
    );
    format!("{{{}}}", members.join(", "))
}

fn json_of(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Datetime(time) => quoted(&time.to_string()),
        DeValue::Array(all) => {
            let all: Vec<String> = all.iter().map(|one| json_of(one.get_ref())).collect();
            format!("[{}]", all.join(", "))
        }
        DeValue::Table(table) => {
            let all: Vec<String> = table
                .iter()
                .map(|(key, value)| {
                    format!("{}: {}", quoted(key.get_ref()), json_of(value.get_ref()))
                })
                .collect();
            format!("{{{}}}", all.join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
