//! The policy file, version 1: which keys there are, what each may say, and how a file becomes a [`Policy`].

mod json;
mod lane_keys;
mod models;
mod names;
mod reader;
mod spec;
mod table_spec;
mod tables;

use xxhash_rust::xxh3::xxh3_64;

use crate::models::Models;
use crate::placement::Settings;
use crate::policy::{
    DifficultyPolicy, LimitsPolicy, PlacementPolicy, Policy, PrefixPolicy, SessionPolicy,
};
use crate::problem::Problem;
pub use json::json_schema;
use reader::{Reader, Section};
use spec::{DIFFICULTY, LIMITS, PLACEMENT, PREFIX, SECTIONS, SESSION, THOUSAND, VERSION};
use table_spec::{LANES, MODELS, POOLS, RULES, TABLES, Table};

/// The text of the policy that a gateway runs when it is given none. It says in full what [`Policy::default`] is.
pub const DEFAULT_POLICY: &str = include_str!("../../policies/default.toml");

/// A hash of a policy file's text, by which people tell whether two gateways run the same.
#[must_use]
pub fn fingerprint(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}

/// A key in which two policies differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key with its section, such as `placement.stay`.
    pub key: String,
    /// What the old policy has there, as JSON.
    pub old: String,
    /// What the new one has.
    pub new: String,
}

/// The keys in which two policies differ, in the order of documents.
#[must_use]
pub fn changes(old: &Policy, new: &Policy) -> Vec<Change> {
    let keys = SECTIONS
        .iter()
        .flat_map(|spec| spec.keys.iter().map(move |key| (spec.name, key)));
    let tables = [
        table(&POOLS, old, new),
        table(&LANES, old, new),
        table(&RULES, old, new),
        table(&MODELS, old, new),
        Change {
            key: models::FAMILIES.to_owned(),
            old: families(&old.models),
            new: families(&new.models),
        },
    ];
    keys.map(|(section, key)| Change {
        key: format!("{section}.{}", key.name),
        old: (key.value)(old),
        new: (key.value)(new),
    })
    .chain(tables)
    .filter(|change| change.old != change.new)
    .collect()
}

fn table<R>(table: &Table<R>, old: &Policy, new: &Policy) -> Change {
    Change {
        key: table.name.to_owned(),
        old: table.value(old),
        new: table.value(new),
    }
}

fn families(all: &Models) -> String {
    let all: Vec<&str> = all.families.iter().map(|row| &*row.says).collect();
    format!("[{}]", all.join(", "))
}

/// Reads a policy file. `file_name` is how problems call it.
///
/// # Errors
/// Every problem of the file at once, in the order of the text: broken TOML, unknown keys (with the nearest known one), wrong types,
/// values out of range, what is missing.
pub fn compile(file_name: &str, text: &str) -> Result<Policy, Vec<Problem>> {
    read(file_name, text, None)
}

/// [`compile`] for a gateway that has these replicas: a pool may name no other.
///
/// # Errors
/// As [`compile`].
pub fn compile_for(fleet: &[&str], file_name: &str, text: &str) -> Result<Policy, Vec<Problem>> {
    read(file_name, text, Some(fleet))
}

fn read(file_name: &str, text: &str, fleet: Option<&[&str]>) -> Result<Policy, Vec<Problem>> {
    let (table, syntax) = toml::de::DeTable::parse_recoverable(text);
    let mut reader = Reader::new(file_name, text);
    let root = Section::root(table.get_ref());
    let known: Vec<&str> = ["version"]
        .into_iter()
        .chain(SECTIONS.map(|spec| spec.name))
        .chain(TABLES)
        .chain([models::FAMILIES])
        .collect();
    reader.keys(&root, &known);
    reader.version(&root, VERSION);
    let session = session(&mut reader, &root);
    let policy = Policy {
        limits: limits(&mut reader, &root, &session),
        session,
        prefix: prefix(&mut reader, &root),
        placement: placement(&mut reader, &root),
        difficulty: difficulty(&mut reader, &root),
        lanes: tables::lanes(&mut reader, &root, fleet),
        models: models::models(&mut reader, &root),
    };
    for error in &syntax {
        let at = error.span().map_or(0, |span| span.start);
        reader.syntax(at, error.message());
    }
    let problems = reader.into_problems();
    if problems.is_empty() {
        Ok(policy)
    } else {
        Err(problems)
    }
}

fn session(reader: &mut Reader<'_>, root: &Section<'_>) -> SessionPolicy {
    let default = SessionPolicy::default();
    let Some(section) = reader.section(root, &SESSION) else {
        return default;
    };
    SessionPolicy {
        headers: reader.names(&section, "headers").unwrap_or(default.headers),
        agents: reader.flag(&section, "agents").unwrap_or(default.agents),
        body: reader.names(&section, "body").unwrap_or(default.body),
        infer: reader.flag(&section, "infer").unwrap_or(default.infer),
        pin_ttl_seconds: reader
            .count(&section, "pin_ttl_seconds")
            .unwrap_or(default.pin_ttl_seconds),
        pins_max: reader
            .count(&section, "pins_max")
            .unwrap_or(default.pins_max),
    }
}

fn prefix(reader: &mut Reader<'_>, root: &Section<'_>) -> PrefixPolicy {
    let default = PrefixPolicy::default();
    let Some(section) = reader.section(root, &PREFIX) else {
        return default;
    };
    let prefix = PrefixPolicy {
        block_bytes: reader
            .count(&section, "block_bytes")
            .unwrap_or(default.block_bytes),
        cache_tokens: reader
            .count(&section, "cache_tokens")
            .unwrap_or(default.cache_tokens),
        canonical_tools: reader
            .flag(&section, "canonical_tools")
            .unwrap_or(default.canonical_tools),
        sort_properties: reader
            .flag(&section, "sort_properties")
            .unwrap_or(default.sort_properties),
        effort_in_head: reader
            .names(&section, "effort_in_head")
            .unwrap_or(default.effort_in_head),
    };
    if prefix.sort_properties && !prefix.canonical_tools {
        let message = "`prefix.sort_properties` does nothing without `canonical_tools`; expected `canonical_tools = true` beside it, or `false`";
        reader.add(section.place("sort_properties"), message.to_owned());
    }
    prefix
}

fn placement(reader: &mut Reader<'_>, root: &Section<'_>) -> PlacementPolicy {
    let default = PlacementPolicy::default();
    let Some(section) = reader.section(root, &PLACEMENT) else {
        return default;
    };
    let mut number = |key, default| {
        let thousandths = reader.thousandths(&section, key);
        thousandths.map_or(default, |thousandths| f64::from(thousandths) / THOUSAND)
    };
    let Settings {
        crowding,
        in_flight,
        common_share,
        stay,
        leave_s_min,
    } = default.settings;
    PlacementPolicy {
        settings: Settings {
            crowding: number("crowding", crowding),
            in_flight: number("in_flight_weight", in_flight),
            common_share: number("common_share", common_share),
            stay: number("stay", stay),
            leave_s_min,
        },
    }
}

fn difficulty(reader: &mut Reader<'_>, root: &Section<'_>) -> DifficultyPolicy {
    let default = DifficultyPolicy::default();
    let Some(section) = reader.section(root, &DIFFICULTY) else {
        return default;
    };
    let margin = reader.thousandths(&section, "margin");
    DifficultyPolicy {
        margin: margin.map_or(default.margin, |margin| f64::from(margin) / THOUSAND),
    }
}

fn limits(reader: &mut Reader<'_>, root: &Section<'_>, session: &SessionPolicy) -> LimitsPolicy {
    let default = LimitsPolicy::default();
    let Some(section) = reader.section(root, &LIMITS) else {
        return default;
    };
    let limits = LimitsPolicy {
        in_flight_per_session: reader
            .count(&section, "in_flight_per_session")
            .unwrap_or(default.in_flight_per_session),
        prompt_bytes_max: reader
            .count(&section, "prompt_bytes_max")
            .unwrap_or(default.prompt_bytes_max),
    };
    if limits.in_flight_per_session > 0 && !session.names_any() {
        let message = "`limits.in_flight_per_session` counts sessions that something names, but `session.headers` and `session.body` are empty and `session.agents` is `false`; expected one of them to name sessions, or `0`";
        reader.add(section.place("in_flight_per_session"), message.to_owned());
    }
    limits
}

#[cfg(test)]
mod tests;
