//! Which part may lean on which.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::root;

/// A package with its allowed dependencies: shipped ones only, tests may use more.
const ARROWS: &[(&str, &[&str])] = &[
    ("routing-policies", &["cel", "toml", "xxhash-rust"]),
    (
        "gateway/wire",
        &["bytes", "memchr", "serde", "serde_json", "toml"],
    ),
    ("engine-replica/core", &["sha2"]),
];

/// Packages of this workspace that each package may use.
const INSIDE: &[(&str, &[&str])] = &[
    ("routing-policies", &[]),
    ("gateway/wire", &[]),
    ("engine-replica/core", &[]),
    ("gateway", &["chat-wire", "routing-policies"]),
    ("engine-replica", &["chat-wire", "replica-core"]),
];

const OURS: &[&str] = &[
    "chat-wire",
    "routing-policies",
    "replica-core",
    "gateway",
    "engine-replica",
    "cuda-sim",
    "system-tests",
    "qualify",
];

fn dependencies(package: &str) -> BTreeSet<String> {
    let path = root().join(package).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let manifest: toml::Table = text
        .parse()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    manifest
        .get("dependencies")
        .and_then(|d| d.as_table())
        .map(|d| d.keys().cloned().collect())
        .unwrap_or_default()
}

#[test]
fn a1_pure_crates_depend_on_what_is_written_here_only() {
    for (package, allowed) in ARROWS {
        let allowed: BTreeSet<String> = allowed.iter().map(|s| (*s).to_owned()).collect();
        assert_eq!(
            dependencies(package),
            allowed,
            "{package}: a new dependency edits this list and ARCHITECTURE.md"
        );
    }
}

#[test]
fn a2_a3_arrows_between_our_packages_point_one_way() {
    let inside: BTreeMap<_, _> = INSIDE.iter().copied().collect();
    for (package, allowed) in inside {
        let ours: Vec<String> = dependencies(package)
            .into_iter()
            .filter(|d| OURS.contains(&d.as_str()))
            .collect();
        assert_eq!(ours, allowed, "{package}");
    }
}

#[test]
fn the_top_level_holds_what_architecture_says() {
    for name in [
        "Cargo.toml",
        "gateway",
        "engine-replica",
        "routing-policies",
        "deploy",
        "tests",
        "README.md",
        "ARCHITECTURE.md",
    ] {
        assert!(root().join(name).exists(), "{name}");
    }
}
