mod classify;
mod explain;

use std::path::{Path, PathBuf};

use clap::Parser as _;
use expect_test::{Expect, expect};
use tempfile::TempDir;

use crate::cli::{Cli, Command};

/// Files with these names and texts, in a folder that goes when the test does.
fn files<const N: usize>(texts: [(&str, &str); N]) -> (TempDir, [PathBuf; N]) {
    let folder = tempfile::tempdir().unwrap();
    let paths = texts.map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    (folder, paths)
}

/// What `gateway policy` with these arguments prints, or says as it fails, with the folder's name left out.
fn said(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let line = ["gateway", "policy"].iter().chain(arguments);
    let Command::Policy(command) = Cli::try_parse_from(line).unwrap().command else {
        panic!("not `policy`")
    };
    let inside = format!("{}/", folder.display());
    let short = |text: String| text.replace(&inside, "");
    super::run(command).map(short).map_err(short)
}

#[track_caller]
fn check(folder: &Path, arguments: &[&str], expect: &Expect) {
    let text = said(folder, arguments).unwrap_or_else(|why| format!("failed: {why}\n"));
    expect.assert_eq(&text);
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Eight turns each of five sessions, one request a second, each answered within ten.
fn trace() -> String {
    let line = |place: usize| {
        let (session, turn) = (place % 5, place / 5);
        let blocks: Vec<String> = (0..=turn)
            .map(|part| (session * 100 + part).to_string())
            .collect();
        format!(
            "{{\"timestamp\":{},\"input_length\":{},\"output_length\":500,\"session_id\":{session},\"hash_ids\":[{}]}}\n",
            place * 1_000,
            512 * (turn + 1),
            blocks.join(",")
        )
    };
    (0..40).map(line).collect()
}

#[test]
fn check_tells_good_files_or_every_problem_of_all() {
    let (folder, [good, bad, worse]) = files([
        ("good.toml", "version = 1\n"),
        ("bad.toml", "version = 1\n[placement]\ncrowdin = 1\n"),
        ("worse.toml", "version = 1\n[prefix]\nblock_bytes = 1\n"),
    ]);
    check(
        folder.path(),
        &["check", text(&good)],
        &expect![[r#"
            good.toml: good, version b6cdc92247ebea29
        "#]],
    );
    let missing = folder.path().join("none.toml");
    check(
        folder.path(),
        &[
            "check",
            text(&good),
            text(&bad),
            text(&missing),
            text(&worse),
        ],
        &expect![[r#"
            failed: none.toml: cannot be read: No such file or directory (os error 2)
            bad.toml:3:1: unknown key `placement.crowdin`; did you mean `crowding`?
            worse.toml:3:15: `prefix.block_bytes` is `1`, expected a whole number of bytes from 256 to 4096
            2 problems in 2 files; the gateway would keep its running policy
        "#]],
    );
}

#[test]
fn every_shipped_policy_is_good() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../routing-policies/policies");
    let shipped = std::fs::read_dir(&folder).unwrap();
    let files: Vec<PathBuf> = shipped
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    assert!(!files.is_empty());
    let mut arguments = vec!["check"];
    arguments.extend(files.iter().map(|path| text(path)));
    assert!(said(&folder, &arguments).is_ok());
}

#[test]
fn replay_prints_a_line_per_policy_and_cell() {
    let (folder, [trace, policy]) = files([
        ("trace.jsonl", &trace()),
        ("new.toml", "version = 1\n[placement]\nstay = 1\n"),
    ]);
    let arguments = [
        "replay",
        "--trace",
        text(&trace),
        "--policy",
        text(&policy),
        "--replicas",
        "2,4",
        "--cache-tokens",
        "4096",
        "--json",
    ];
    let lines: Vec<serde_json::Value> = said(folder.path(), &arguments)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2 * 12);
    assert_eq!(lines[0]["policy"], "new.toml");
    assert_eq!(
        (&lines[0]["replicas"], &lines[12]["replicas"]),
        (&2.into(), &4.into())
    );
    for line in &lines {
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "policy",
                "replicas",
                "cache_tokens",
                "hit",
                "of_pool",
                "imbalance",
                "ttft_mean",
                "ttft_p50",
                "ttft_p90",
                "ttft_p99"
            ]
        );
    }
    let table = said(folder.path(), &arguments[..9]).unwrap();
    assert!(table.starts_with("40 requests\n\n| policy "), "{table}");
    assert!(table.contains("| new.toml ") && table.contains("| cache_aware_0.5/32/1.1 "));
}

#[test]
fn replay_refuses_all_bad_policies_at_once() {
    let (folder, [trace, bad, worse]) = files([
        ("trace.jsonl", &trace()),
        ("bad.toml", "version = 2\n"),
        ("worse.toml", "version = 3\n"),
    ]);
    check(
        folder.path(),
        &[
            "replay",
            "--trace",
            text(&trace),
            "--policy",
            text(&bad),
            text(&worse),
        ],
        &expect![[r#"
            failed: bad.toml:1:11: `version` is `2`, expected `1`
            worse.toml:1:11: `version` is `3`, expected `1`
            2 problems in 2 files; the gateway would keep its running policy
        "#]],
    );
}

#[test]
fn diff_tells_keys_and_what_they_come_to() {
    let (folder, [trace, old, new]) = files([
        ("trace.jsonl", &trace()),
        ("old.toml", "version = 1\n[placement]\nstay = 100\n"),
        (
            "new.toml",
            "version = 1\n[session]\nagents = false\n[prefix]\nblock_bytes = 512\n[placement]\nin_flight_weight = 10\n",
        ),
    ]);
    let options = [
        "--trace",
        text(&trace),
        "--replicas",
        "2",
        "--cache-tokens",
        "65536",
    ];
    let arguments = |old, new| [&["diff", old, new], &options[..]].concat();
    check(
        folder.path(),
        &arguments(text(&old), text(&new)),
        &expect![[r#"
            session.agents: true -> false
            prefix.block_bytes: 2048 -> 512
            placement.in_flight_weight: 0.1 -> 10.0
            placement.stay: 100.0 -> 1.0
            a session that is named otherwise than before counts as new once; a trace does not tell names, so the numbers below leave that out
            remembered prefixes do not fit the new pieces, so each conversation without a name counts as new once; the numbers below leave that out

            | replicas | cache tokens |  sessions moved |   requests moved |   hit | new hit | p90 s | new p90 s |   change |
            |----------|-------------:|----------------:|-----------------:|------:|--------:|------:|----------:|---------:|
            | 2        |        65536 | 3 of 5 (60.0 %) | 6 of 40 (15.0 %) | 0.778 |   0.678 | 0.405 |     1.575 | +288.9 % |
        "#]],
    );
    check(
        folder.path(),
        &arguments(text(&old), text(&old)),
        &expect![[r#"
            the two policies are the same

            | replicas | cache tokens | sessions moved |  requests moved |   hit | new hit | p90 s | new p90 s | change |
            |----------|-------------:|---------------:|----------------:|------:|--------:|------:|----------:|-------:|
            | 2        |        65536 | 0 of 5 (0.0 %) | 0 of 40 (0.0 %) | 0.778 |   0.778 | 0.405 |     0.405 | +0.0 % |
        "#]],
    );
}

#[test]
fn impossible_numbers_are_refused_as_they_are_typed() {
    for (flag, value) in [
        ("--offered-load", "0"),
        ("--speed", "inf"),
        ("--jitter-ms", "-1"),
        ("--replicas", "0"),
        ("--block-tokens", "0"),
    ] {
        let option = format!("{flag}={value}");
        let line = ["gateway", "policy", "replay", "--trace", "t", &option];
        assert!(Cli::try_parse_from(line).is_err(), "{option}");
    }
}

const TURN_1: &str = r#"{"model":"m","messages":[{"role":"user","content":"Which replica?"}]}"#;
const TURN_2: &str = r#"{"model":"m","messages":[{"role":"user","content":"Which replica?"},{"role":"assistant","content":"This one."},{"role":"user","content":"Why?"}]}"#;
const STATE: &str = r#"{"draining":false,"replicas":[
    {"name":"a","address":"a:1","ready":true,"in_flight":3},
    {"name":"b","address":"b:1","ready":true,"in_flight":0},
    {"name":"c","address":"c:1","ready":false,"in_flight":0}],"pins":{}}"#;
