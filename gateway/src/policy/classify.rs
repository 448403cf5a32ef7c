//! `gateway policy classify`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use routing_policies::Policy;
use routing_policies::difficulty::{Difficulty, Turn};
use routing_policies::lanes::{Facts, difficulty_of, difficulty_step};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::Classify;

/// Bytes of one line.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// Lines of one file: their answers are kept until all are there.
const LINES_MAX: usize = 1_000_000;
/// Bytes of a text per token.
const TOKEN_BYTES: usize = 4;
/// Decimals that are printed, as a power of ten.
const DECIMALS: f64 = 1e6;

#[derive(Deserialize)]
struct Line {
    id: Value,
    text: String,
}

#[derive(Serialize)]
struct Judged<'j> {
    id: &'j Value,
    difficulty: f64,
    lane: &'j str,
}

/// A line for each text: how difficult it is, and the lane that follows.
pub(super) fn run(options: &Classify) -> Result<String, String> {
    let policy = match &options.policy {
        Some(file) => super::files::load(&[file])?.swap_remove(0).policy,
        None => Policy::default(),
    };
    let other = options.weights.as_deref().map(weights).transpose()?;
    let difficulty = other.as_ref().unwrap_or(Difficulty::built_in());
    let name = options.texts.display();
    let input: Box<dyn BufRead> = if options.texts == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(&options.texts);
        Box::new(BufReader::new(
            file.map_err(|error| format!("{name}: cannot be read: {error}"))?,
        ))
    };
    let mut out = String::new();
    each_line(&name.to_string(), input, |line| {
        let turn = Turn {
            text: &line.text,
            before: "",
        };
        let score = difficulty.score(&turn);
        let judged = Judged {
            id: &line.id,
            difficulty: (score * DECIMALS).round() / DECIMALS,
            lane: lane(&policy, &line.text, score, options.think_from),
        };
        out.push_str(&serde_json::to_string(&judged).unwrap_or_default());
        out.push('\n');
    })?;
    Ok(out)
}

/// Weights from a file.
pub(super) fn weights(file: &Path) -> Result<Difficulty, String> {
    let name = file.display();
    let bytes = std::fs::read(file).map_err(|error| format!("{name}: cannot be read: {error}"))?;
    Difficulty::from_bytes(&bytes).map_err(|error| format!("{name}: {error}"))
}

fn each_line(
    name: &str,
    mut input: impl BufRead,
    mut each: impl FnMut(Line),
) -> Result<(), String> {
    let mut text = Vec::new();
    for number in 1..=LINES_MAX {
        text.clear();
        let read = input
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut text)
            .map_err(|error| format!("{name}:{number}: cannot be read: {error}"))?;
        if read == 0 {
            return Ok(());
        }
        if text.trim_ascii().is_empty() {
            continue;
        }
        let line = serde_json::from_slice(&text);
        each(line.map_err(|error| {
            format!("{name}:{number}: {error}; expected an object with `id` and `text`")
        })?);
    }
    Err(format!(
        "{name}: more than {LINES_MAX} lines; classify a part of it"
    ))
}

/// The policy's lane for a request that says this and nothing else; without lanes, whether it should think.
fn lane<'p>(policy: &'p Policy, text: &str, score: f64, think_from: f64) -> &'p str {
    let facts = Facts {
        prompt_tokens: u32::try_from(text.len() / TOKEN_BYTES).unwrap_or(u32::MAX),
        messages: 1,
        ..Facts::default()
    };
    let as_rules_see = difficulty_of(difficulty_step(score));
    match policy.lanes.choose(&facts, |_| None, || as_rules_see) {
        Some(choice) => &choice.lane.name,
        None if score >= think_from => "think",
        None => "no_think",
    }
}
