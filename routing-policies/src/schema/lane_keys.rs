//! What a lane says about thinking, read from its table.

use toml::de::DeValue;

use super::reader::{Reader, Section};
use crate::lanes::{Effort, LANE_TOKENS_MAX, Lane, THINKING, Wishes};
use crate::nearest::nearest;

/// The lane without its name and its pool.
pub(super) fn read(reader: &mut Reader<'_>, table: &Section<'_>) -> Lane {
    // Not thinking at all is the switch's to say.
    let efforts = Effort::WORDS.get(1..).unwrap_or_default();
    let lane = Lane {
        thinking: word(reader, table, "thinking", &THINKING),
        budget: tokens(reader, table, "budget", 0),
        budget_max: tokens(reader, table, "budget_max", 0),
        effort: word(reader, table, "effort", efforts),
        max_tokens: tokens(reader, table, "max_tokens", 1),
        wishes: word(reader, table, "wishes", &Wishes::WORDS).unwrap_or_default(),
        ..Lane::new("")
    };
    if lane.thinking == Some(false) {
        for key in ["budget", "budget_max", "effort"] {
            if table.has(key) {
                let path = table.path_of(key);
                let message = format!(
                    "`{path}` does nothing with `thinking = \"off\"`; expected one of the two"
                );
                reader.add(table.place(key), message);
            }
        }
    }
    if let (Some(budget), Some(most)) = (lane.budget, lane.budget_max)
        && budget > most
    {
        let path = table.path_of("budget");
        let message = format!("`{path}` is {budget}, expected at most `budget_max` = {most}");
        reader.add(table.place("budget"), message);
    }
    lane
}

fn word<T: Copy>(
    reader: &mut Reader<'_>,
    table: &Section<'_>,
    key: &str,
    words: &[(&'static str, T)],
) -> Option<T> {
    let (text, span) = reader.text(table, key)?;
    let found = words.iter().find(|(word, _)| *word == text);
    if found.is_none() {
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let hint = match nearest(&text, &all) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => String::new(),
        };
        let expected = format!("one of `{}`{hint}", all.join("`, `"));
        reader.wrong(&table.path_of(key), span, &expected);
    }
    found.map(|(_, value)| *value)
}

fn tokens(reader: &mut Reader<'_>, table: &Section<'_>, key: &str, least: u32) -> Option<u32> {
    let value = table.table.get(key)?;
    let number = match value.get_ref() {
        DeValue::Integer(digits) => u32::from_str_radix(digits.as_str(), digits.radix()).ok(),
        _ => None,
    };
    let number = number.filter(|number| (least..=LANE_TOKENS_MAX).contains(number));
    if number.is_none() {
        let expected = format!("a whole number of tokens from {least} to {LANE_TOKENS_MAX}");
        reader.wrong(&table.path_of(key), value.span(), &expected);
    }
    number
}
