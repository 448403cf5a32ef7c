//! Names that users hold: metrics stand in one file per shell, and documents may name no other.

use std::collections::BTreeSet;

use crate::sources::{File, files, none, root};

const PREFIXES: &[&str] = &["gateway_", "replica_", "vllm:"];
const SUFFIXES: &[&str] = &[
    "_total",
    "_seconds",
    "_tokens",
    "_perc",
    "_running",
    "_waiting",
    "_info",
    "_in_flight",
    "_ready",
    "_bytes",
];

/// Words of `text` that look like one of our metrics.
fn metric_words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
        .filter(|w| {
            PREFIXES.iter().any(|p| w.starts_with(p)) && SUFFIXES.iter().any(|s| w.ends_with(s))
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn a6_metric_names_stand_in_metrics_rs_only() {
    let mut offenders = Vec::new();
    for folder in ["gateway/src", "engine-replica/src"] {
        for file in files(folder, &[".rs"]) {
            if file.path.contains("/metrics") {
                continue;
            }
            let quoted: String = string_literals(file.shipped()).join(" ");
            offenders.extend(
                metric_words(&quoted)
                    .iter()
                    .map(|w| format!("{}: {w}", file.path)),
            );
        }
    }
    none("a metric name outside metrics.rs", &offenders);
}

/// What stands between double quotes on one line; enough to find names.
fn string_literals(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|l| !l.trim_start().starts_with("//"))
        .flat_map(|l| l.split('"').skip(1).step_by(2))
        .collect()
}

#[test]
fn a6_documents_and_boards_name_only_metrics_that_exist() {
    let catalogue: BTreeSet<String> = ["gateway/METRICS.md", "engine-replica/METRICS.md"]
        .iter()
        .flat_map(|p| {
            metric_words(
                &std::fs::read_to_string(root().join(p)).unwrap_or_else(|e| panic!("{p}: {e}")),
            )
        })
        .collect();
    assert!(
        catalogue.len() > 10,
        "the catalogues are read: {catalogue:?}"
    );
    let mut offenders = Vec::new();
    let documents = files(".", &[".md", ".yaml", ".yml", ".json"]);
    for File { path, text } in documents
        .iter()
        .filter(|f| !f.path.ends_with("METRICS.md") && !f.path.starts_with("tests/golden"))
    {
        for word in metric_words(text) {
            let base = word
                .trim_end_matches("_bucket")
                .trim_end_matches("_sum")
                .trim_end_matches("_count");
            if !catalogue.contains(base) {
                offenders.push(format!("{path}: {word}"));
            }
        }
    }
    none(
        "a document names a metric that no catalogue has",
        &offenders,
    );
}
