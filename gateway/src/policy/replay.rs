//! `gateway policy replay`.

use std::path::PathBuf;

use routing_policies::Policy;
use routing_policies::replay::{AGAINST, Row, Summary, compare, summaries};
use serde::Serialize;

use super::table::table;
use crate::cli::ReplaySetup;

/// A row as `--json` prints it. Times are in seconds.
#[derive(Serialize)]
struct Line<'r> {
    policy: &'r str,
    replicas: usize,
    cache_tokens: u64,
    hit: f64,
    of_pool: f64,
    imbalance: f64,
    ttft_mean: f64,
    ttft_p50: f64,
    ttft_p90: f64,
    ttft_p99: f64,
}

/// Every policy and baseline in every cell, as tables or as one JSON object a line.
pub(super) fn run(files: &[PathBuf], setup: &ReplaySetup, json: bool) -> Result<String, String> {
    let policies = policies(files)?;
    let requests = super::trace::load(setup)?;
    let rows = compare(&requests, &super::cells(setup), &policies, super::SEED);
    if json {
        return rows.iter().map(json_line).collect();
    }
    let head = [
        "policy",
        "replicas",
        "cache tokens",
        "hit",
        "of pool",
        "imbalance",
        "p50 s",
        "p90 s",
        "p99 s",
    ];
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let summaries: Vec<Vec<String>> = summaries(&rows).iter().map(summary_cells).collect();
    let over = ["policy", "hit", "of pool", "imbalance", "p90", "worst p90"];
    Ok(format!(
        "{} requests\n\n{}\nover all cells, p90 as a share of {AGAINST}'s:\n\n{}",
        requests.len(),
        table(&head, &cells),
        table(&over, &summaries)
    ))
}

/// The policies with their files' names; without a file, the one built in.
fn policies(files: &[PathBuf]) -> Result<Vec<(String, Policy)>, String> {
    if files.is_empty() {
        return Ok(vec![("default".to_owned(), Policy::default())]);
    }
    let loaded = super::files::load(files)?;
    Ok(loaded
        .into_iter()
        .map(|file| (file.name, file.policy))
        .collect())
}

fn json_line(row: &Row) -> Result<String, String> {
    let line = Line {
        policy: &row.policy,
        replicas: row.setup.replicas,
        cache_tokens: row.setup.cache_tokens,
        hit: row.outcome.hit,
        of_pool: row.outcome.of_pool,
        imbalance: row.outcome.imbalance,
        ttft_mean: row.outcome.ttft_mean_s,
        ttft_p50: row.outcome.ttft_p50_s,
        ttft_p90: row.outcome.ttft_p90_s,
        ttft_p99: row.outcome.ttft_p99_s,
    };
    let text = serde_json::to_string(&line).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

fn cells(row: &Row) -> Vec<String> {
    let outcome = &row.outcome;
    vec![
        row.policy.clone(),
        row.setup.replicas.to_string(),
        row.setup.cache_tokens.to_string(),
        format!("{:.3}", outcome.hit),
        format!("{:.3}", outcome.of_pool),
        format!("{:.2}", outcome.imbalance),
        format!("{:.3}", outcome.ttft_p50_s),
        format!("{:.3}", outcome.ttft_p90_s),
        format!("{:.3}", outcome.ttft_p99_s),
    ]
}

fn summary_cells(summary: &Summary) -> Vec<String> {
    vec![
        summary.policy.clone(),
        format!("{:.3}", summary.hit),
        format!("{:.3}", summary.of_pool),
        format!("{:.2}", summary.imbalance),
        format!("{:.3}", summary.p90),
        format!("{:.3}", summary.p90_worst),
    ]
}
