//! `[[models]]` and `[[families]]`.

use toml::de::DeValue;

use super::reader::{Reader, Section};
use super::spec::quoted;
use super::table_spec::{MODEL_NAME_BYTES_MAX, MODELS};
use crate::models::{
    Budget, FamilyRow, ModelRule, Models, Reasoning, ReasoningField, THINKING_TOKENS_MAX,
};
use crate::nearest::nearest;

/// The name of the tables whose keys are the gateway's to check.
pub(super) const FAMILIES: &str = "families";

/// Both.
pub(super) fn models(reader: &mut Reader<'_>, root: &Section<'_>) -> Models {
    Models {
        rules: rules(reader, root),
        families: families(reader, root),
    }
}

fn rules(reader: &mut Reader<'_>, root: &Section<'_>) -> Vec<ModelRule> {
    let mut rules: Vec<ModelRule> = Vec::new();
    for table in reader.tables(root, &MODELS) {
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
            budget: reader.word(&table, "budget", &Budget::WORDS),
        };
        if !rule.name.is_empty() {
            rules.push(rule);
        }
    }
    rules
}

fn families(reader: &mut Reader<'_>, root: &Section<'_>) -> Vec<FamilyRow> {
    let mut families: Vec<FamilyRow> = Vec::new();
    for table in reader.sections(root, FAMILIES) {
        if !table.has("name") {
            reader.add(table.at, format!("`{}` is missing", table.path_of("name")));
        }
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
