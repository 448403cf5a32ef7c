//! `gateway policy diff`.

use std::path::Path;

use routing_policies::replay::{Moves, Outcome, Ruled, Setup, moves, run as replay};
use routing_policies::{Change, Policy, changes};

use super::table::table;
use crate::cli::ReplaySetup;

/// Keys that decide what a session is called: where one of them changes, sessions may change their names.
const NAMING: [&str; 3] = ["session.headers", "session.agents", "session.body"];

/// The key that decides where messages are cut, and so what a remembered prefix is called.
const CUTTING: &str = "prefix.block_bytes";

/// Sections that decide which replicas a request may go to.
const LANES: [&str; 3] = ["pools", "lanes", "rules"];

/// What changes in the file, and what it comes to on the trace.
pub(super) fn run(old: &Path, new: &Path, setup: &ReplaySetup) -> Result<String, String> {
    let files = super::files::load(&[old, new])?;
    let [old, new] = [&files[0].policy, &files[1].policy];
    let requests = super::trace::load(setup)?;
    let changes = changes(old, new);
    let mut text = said(&changes);
    let mut rows = Vec::new();
    for cell in super::cells(setup) {
        let of = |policy: &Policy| {
            let mut ruled = Ruled::new(&cell, policy.placement.settings, super::SEED);
            replay(&cell, &requests, &mut ruled)
        };
        let moves = moves(&cell, &requests, old, new, super::SEED);
        rows.push(cells(&cell, &moves, &of(old), &of(new)));
    }
    let head = [
        "replicas",
        "cache tokens",
        "sessions moved",
        "requests moved",
        "hit",
        "new hit",
        "p90 s",
        "new p90 s",
        "change",
    ];
    text.push('\n');
    text.push_str(&table(&head, &rows));
    Ok(text)
}

/// The changed keys, one a line, and what a replay cannot show.
fn said(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "the two policies are the same\n".to_owned();
    }
    let mut text = String::new();
    for Change { key, old, new } in changes {
        text.push_str(&format!("{key}: {old} -> {new}\n"));
    }
    if changes
        .iter()
        .any(|change| NAMING.contains(&change.key.as_str()))
    {
        text.push_str(
            "a session that is named otherwise than before counts as new once; a trace does not tell names, so the numbers below leave that out\n",
        );
    }
    if changes
        .iter()
        .any(|change| LANES.contains(&change.key.as_str()))
    {
        text.push_str(
            "a trace does not tell what rules ask for, so in the numbers below every request may go to all replicas\n",
        );
    }
    if changes.iter().any(|change| change.key == CUTTING) {
        text.push_str(
            "remembered prefixes do not fit the new pieces, so each conversation without a name counts as new once; the numbers below leave that out\n",
        );
    }
    text
}

fn cells(setup: &Setup, moves: &Moves, old: &Outcome, new: &Outcome) -> Vec<String> {
    let of = |part: usize, whole: usize| {
        let percent = 100.0 * part as f64 / whole.max(1) as f64;
        format!("{part} of {whole} ({percent:.1} %)")
    };
    let change = 100.0 * (new.ttft_p90_s / old.ttft_p90_s - 1.0);
    vec![
        setup.replicas.to_string(),
        setup.cache_tokens.to_string(),
        of(moves.sessions_moved, moves.sessions),
        of(moves.requests_moved, moves.requests),
        format!("{:.3}", old.hit),
        format!("{:.3}", new.hit),
        format!("{:.3}", old.ttft_p90_s),
        format!("{:.3}", new.ttft_p90_s),
        format!("{change:+.1} %"),
    ]
}
