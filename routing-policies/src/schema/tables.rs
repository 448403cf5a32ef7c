//! `[[pools]]`, `[[lanes]]` and `[[rules]]`: tables that name each other, and the replicas of a fleet.

use std::ops::Range;

use toml::de::DeValue;

use super::lane_keys;
use super::reader::{Reader, Section};
use super::table_spec::{LANES, NAME_CHARS_MAX, POOL_REPLICAS_MAX, POOLS, RULES, Table};
use crate::lanes::{Condition, Lane, Lanes, Pool, Rule, TABLES_MAX};
use crate::nearest::nearest;

/// What the name of a pool, lane or rule is made of.
const NAME: &str = "a name of 1 to 64 letters, digits, `-`, `_` or `.`";

/// A string of the file with its place.
pub(super) type Text = (String, Range<usize>);

/// All three; `fleet` holds the replicas that there are, where they are known.
pub(super) fn lanes(reader: &mut Reader<'_>, root: &Section<'_>, fleet: Option<&[&str]>) -> Lanes {
    let pools = pools(reader, root, fleet);
    let pool_names: Vec<&str> = pools.iter().map(Pool::name).collect();
    let lanes = lanes_of(reader, root, &pool_names);
    let lane_names: Vec<&str> = lanes.iter().map(|lane| &*lane.name).collect();
    let rules = rules(reader, root, &lane_names);
    Lanes {
        pools,
        lanes,
        rules,
    }
}

fn pools(reader: &mut Reader<'_>, root: &Section<'_>, fleet: Option<&[&str]>) -> Vec<Pool> {
    let mut pools: Vec<Pool> = Vec::new();
    for table in reader.tables(root, &POOLS) {
        let taken = |name: &str| pools.iter().any(|pool| pool.name() == name);
        let name = name(reader, &table, taken);
        let mut replicas: Vec<String> = Vec::new();
        for (path, (replica, span)) in reader.texts(&table, "replicas", POOL_REPLICAS_MAX) {
            if replicas.contains(&replica) {
                reader.wrong(&path, span, "each replica once");
            } else if let Some(fleet) = fleet.filter(|fleet| !fleet.contains(&replica.as_str())) {
                let expected = one_of("a replica that the gateway has", &replica, fleet);
                reader.wrong(&path, span, &expected);
            } else {
                replicas.push(replica);
            }
        }
        pools.extend(name.map(|name| Pool::new(name, replicas)));
    }
    pools
}

fn lanes_of(reader: &mut Reader<'_>, root: &Section<'_>, pools: &[&str]) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    for table in reader.tables(root, &LANES) {
        let taken = |name: &str| lanes.iter().any(|lane| *lane.name == *name);
        let name = name(reader, &table, taken);
        let pool = reader.text(&table, "pool").map(|pool| {
            known(reader, &table, "pool", &pool, pools);
            pool.0
        });
        let keys = lane_keys::read(reader, &table);
        lanes.extend(name.map(|name| Lane {
            name: name.into(),
            pool,
            ..keys
        }));
    }
    lanes
}

fn rules(reader: &mut Reader<'_>, root: &Section<'_>, lanes: &[&str]) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for table in reader.tables(root, &RULES) {
        let taken = |name: &str| rules.iter().any(|rule| rule.name == name);
        let name = name(reader, &table, taken);
        let when = reader.text(&table, "when");
        let when = when.and_then(|when| condition(reader, &table, when));
        let lane = reader.text(&table, "lane");
        if let Some(lane) = &lane {
            known(reader, &table, "lane", lane, lanes);
        }
        if let (Some(name), Some(when), Some((lane, _))) = (name, when, lane) {
            rules.push(Rule { name, when, lane });
        }
    }
    rules
}

fn name(
    reader: &mut Reader<'_>,
    table: &Section<'_>,
    taken: impl Fn(&str) -> bool,
) -> Option<String> {
    let (name, span) = reader.text(table, "name")?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let expected = if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(fits) {
        NAME
    } else if taken(&name) {
        "each name once"
    } else {
        return Some(name);
    };
    reader.wrong(&table.path_of("name"), span, expected);
    None
}

/// Says so where `key` names nothing that there is.
fn known(reader: &mut Reader<'_>, table: &Section<'_>, key: &str, named: &Text, known: &[&str]) {
    let (name, span) = named;
    if !known.contains(&name.as_str()) {
        let expected = one_of(&format!("a {key} of this file"), name, known);
        reader.wrong(&table.path_of(key), span.clone(), &expected);
    }
}

fn one_of(what: &str, name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        _ if known.is_empty() => format!("{what}; there is none"),
        Some(near) => format!("{what}; did you mean `{near}`?"),
        None => format!("{what}; there is `{}`", known.join("`, `")),
    }
}

fn condition(
    reader: &mut Reader<'_>,
    table: &Section<'_>,
    (text, span): Text,
) -> Option<Condition> {
    let faults = match Condition::compile(&text) {
        Ok(condition) => return Some(condition),
        Err(faults) => faults,
    };
    let path = table.path_of("when");
    let starts = reader.start_of(&text, &span);
    for fault in faults {
        let at = starts.map_or(span.start, |start| start + fault.at.min(text.len()));
        reader.add(at, format!("`{path}` {}", fault.message));
    }
    None
}

impl Reader<'_> {
    /// The tables of this name, each checked for unknown and missing keys and named by its place.
    pub(super) fn tables<'t, R>(
        &mut self,
        root: &Section<'t>,
        spec: &Table<R>,
    ) -> Vec<Section<'t>> {
        let known: Vec<&str> = spec.keys.iter().map(|known| known.name).collect();
        let tables = self.sections(root, spec.name);
        for section in &tables {
            self.keys(section, &known);
            for needed in spec.keys.iter().filter(|key| key.needed) {
                if !section.has(needed.name) {
                    let path = section.path_of(needed.name);
                    self.add(section.at, format!("`{path}` is missing"));
                }
            }
        }
        tables
    }

    /// The tables of `[[key]]`, each named by its place.
    pub(super) fn sections<'t>(
        &mut self,
        root: &Section<'t>,
        key: &'static str,
    ) -> Vec<Section<'t>> {
        let Some(value) = root.table.get(key) else {
            return Vec::new();
        };
        let expected = format!("sections `[[{key}]]`");
        let Some(elements) = value.get_ref().as_array() else {
            self.wrong(key, value.span(), &expected);
            return Vec::new();
        };
        if elements.len() > TABLES_MAX {
            let count = elements.len();
            let message = format!("`{key}` has {count} sections, expected at most {TABLES_MAX}");
            self.add(value.span().start, message);
        }
        let mut tables = Vec::new();
        for (index, element) in elements.iter().take(TABLES_MAX).enumerate() {
            let path = format!("{key}[{index}]");
            match element.get_ref() {
                DeValue::Table(table) => {
                    tables.push(Section::numbered(path, table, element.span().start));
                }
                _ => self.wrong(&path, element.span(), &expected),
            }
        }
        tables
    }

    /// A string, where it is there.
    pub(super) fn text(&mut self, table: &Section<'_>, key: &str) -> Option<Text> {
        let path = table.path_of(key);
        let value = table.table.get(key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong(&path, value.span(), "a string");
        }
        Some((text?.to_owned(), value.span()))
    }

    /// A list of 1 to `most` strings, each with its path; none where it is not there.
    fn texts(&mut self, table: &Section<'_>, key: &str, most: usize) -> Vec<(String, Text)> {
        let path = table.path_of(key);
        let Some(value) = table.table.get(key) else {
            return Vec::new();
        };
        let elements = value
            .get_ref()
            .as_array()
            .filter(|all| (1..=most).contains(&all.len()));
        let Some(elements) = elements else {
            self.wrong(
                &path,
                value.span(),
                &format!("a list of 1 to {most} strings"),
            );
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            let path = format!("{path}[{index}]");
            match element.get_ref().as_str() {
                Some(text) => texts.push((path, (text.to_owned(), element.span()))),
                None => self.wrong(&path, element.span(), "a string"),
            }
        }
        texts
    }

    /// Where the string's own text begins in the file; `None` where it is written with escapes.
    fn start_of(&self, text: &str, span: &Range<usize>) -> Option<usize> {
        let written = self.text.get(span.clone())?;
        let quotes = if written.starts_with("\"\"\"") || written.starts_with("'''") {
            3
        } else {
            1
        };
        let inside = written.get(quotes..written.len().checked_sub(quotes)?)?;
        let trimmed = inside.strip_prefix('\n').filter(|_| quotes == 3);
        let start = span.start + quotes;
        match trimmed {
            Some(rest) if rest == text => Some(start + 1),
            _ => (inside == text).then_some(start),
        }
    }
}

#[cfg(test)]
mod tests;
