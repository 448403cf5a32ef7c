//! The policy file, version 1: which keys there are, what each may say, and how a file becomes a [`Policy`].

mod names;
mod nearest;
mod reader;

use crate::policy::{LoadBound, PlacementPolicy, Policy, SessionPolicy};
use crate::problem::Problem;
use reader::{Reader, Section};

/// The text of the policy that a gateway runs when it is given none. It says in full what [`Policy::default`] is.
pub const DEFAULT_POLICY: &str = include_str!("../../policies/default.toml");

/// Longest silence before a pin is forgotten, in seconds: a year.
const PIN_TTL_SECONDS_MAX: u32 = 31_536_000;

/// Most pins remembered at once: 100 million of about 100 bytes are 10 GB.
const PINS_MAX_MAX: u32 = 100_000_000;

/// Reads a policy file. `file_name` is how problems call it.
///
/// # Errors
/// Every problem of the file at once, in the order of the text: broken TOML, unknown keys (with the nearest known one), wrong types,
/// values out of range, what is missing.
pub fn compile(file_name: &str, text: &str) -> Result<Policy, Vec<Problem>> {
    let (table, syntax) = toml::de::DeTable::parse_recoverable(text);
    let mut reader = Reader::new(file_name, text);
    let root = Section::root(table.get_ref());
    reader.keys(&root, &["version", "session", "placement"]);
    reader.version(&root, 1);
    let policy = Policy {
        session: session(&mut reader, &root),
        placement: placement(&mut reader, &root),
        ..Policy::default()
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
    let Some(section) = reader.section(root, "session") else {
        return default;
    };
    reader.keys(
        &section,
        &[
            "headers",
            "agents",
            "body",
            "infer",
            "pin_ttl_seconds",
            "pins_max",
        ],
    );
    SessionPolicy {
        headers: reader
            .names(&section, "headers", names::header)
            .unwrap_or(default.headers),
        agents: reader.flag(&section, "agents").unwrap_or(default.agents),
        body: reader
            .names(&section, "body", names::body_path)
            .unwrap_or(default.body),
        infer: reader.flag(&section, "infer").unwrap_or(default.infer),
        pin_ttl_seconds: reader
            .count(
                &section,
                "pin_ttl_seconds",
                1,
                PIN_TTL_SECONDS_MAX,
                "seconds",
            )
            .unwrap_or(default.pin_ttl_seconds),
        pins_max: reader
            .count(&section, "pins_max", 1, PINS_MAX_MAX, "pins")
            .unwrap_or(default.pins_max),
    }
}

fn placement(reader: &mut Reader<'_>, root: &Section<'_>) -> PlacementPolicy {
    let default = PlacementPolicy::default();
    let Some(section) = reader.section(root, "placement") else {
        return default;
    };
    reader.keys(&section, &["load_bound"]);
    let bound = reader.thousandths(
        &section,
        "load_bound",
        LoadBound::MIN.get(),
        LoadBound::MAX.get(),
    );
    PlacementPolicy {
        load_bound: bound.map_or(default.load_bound, LoadBound::from_thousandths),
        ..default
    }
}

#[cfg(test)]
mod tests;
