//! The policy file, version 1: which keys there are, what each may say, and how a file becomes a [`Policy`].

mod json;
mod names;
mod nearest;
mod reader;
mod spec;

use xxhash_rust::xxh3::xxh3_64;

use crate::placement::Settings;
use crate::policy::{PlacementPolicy, Policy, PrefixPolicy, SessionPolicy};
use crate::problem::Problem;
pub use json::json_schema;
use reader::{Reader, Section};
use spec::{PLACEMENT, PREFIX, SECTIONS, SESSION, THOUSAND, VERSION};

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
    keys.map(|(section, key)| Change {
        key: format!("{section}.{}", key.name),
        old: (key.value)(old),
        new: (key.value)(new),
    })
    .filter(|change| change.old != change.new)
    .collect()
}

/// Reads a policy file. `file_name` is how problems call it.
///
/// # Errors
/// Every problem of the file at once, in the order of the text: broken TOML, unknown keys (with the nearest known one), wrong types,
/// values out of range, what is missing.
pub fn compile(file_name: &str, text: &str) -> Result<Policy, Vec<Problem>> {
    let (table, syntax) = toml::de::DeTable::parse_recoverable(text);
    let mut reader = Reader::new(file_name, text);
    let root = Section::root(table.get_ref());
    let known: Vec<&str> = ["version"]
        .into_iter()
        .chain(SECTIONS.map(|spec| spec.name))
        .collect();
    reader.keys(&root, &known);
    reader.version(&root, VERSION);
    let policy = Policy {
        session: session(&mut reader, &root),
        prefix: prefix(&mut reader, &root),
        placement: placement(&mut reader, &root),
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
    PrefixPolicy {
        block_bytes: reader
            .count(&section, "block_bytes")
            .unwrap_or(default.block_bytes),
        cache_tokens: reader
            .count(&section, "cache_tokens")
            .unwrap_or(default.cache_tokens),
    }
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

#[cfg(test)]
mod tests;
