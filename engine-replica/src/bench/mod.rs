//! Measures an engine from inside: the time of prefill, of decode, and what the prefix cache saves.

use std::io::Write;

use crate::engine::handle::EngineHandle;

mod measure;
mod report;
mod row;
#[cfg(test)]
mod tests;

use report::{Header, Reporter};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Prompt lengths, in tokens.
    pub prompt_tokens: Vec<u32>,
    /// Numbers of streams at a time.
    pub streams: Vec<u32>,
    /// Tokens that each stream generates, at least 2.
    pub decode_tokens: u32,
    /// Repetitions; medians are shown.
    pub runs: u32,
    /// One JSON object a row.
    pub json: bool,
}

/// What the engine can hold.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Tokens that prompt and answer share.
    pub context_max: usize,
    /// Tokens of KV.
    pub kv_tokens: usize,
    /// Requests that run at a time.
    pub max_running: usize,
    /// Tokens of the vocabulary.
    pub vocab: usize,
}

/// Why nothing was measured, or not all.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Rows that this engine has no room for; none was measured.
    #[error("{}", .0.join("\n"))]
    NoRoom(Vec<String>),
    /// A request was refused or failed.
    #[error("a request failed: {0}")]
    Failed(String),
    /// The output could not be written.
    #[error("the result could not be written: {0}")]
    Write(#[from] std::io::Error),
}

/// Measures every prompt length with every number of streams and writes a row for each.
///
/// # Errors
/// See `BenchError`; rows that were done are written before an error.
pub async fn bench(
    engine: &EngineHandle,
    plan: &Plan,
    room: Room,
    model: &str,
    out: &mut dyn Write,
) -> Result<(), BenchError> {
    check(plan, room)?;
    let header = Header {
        model,
        runs: plan.runs,
        decode_tokens: plan.decode_tokens,
    };
    let mut reporter = Reporter::new(out, plan.json);
    reporter.begin(&header)?;
    let mut prompts = measure::Prompts::new(room.vocab);
    for &prompt_tokens in &plan.prompt_tokens {
        for &streams in &plan.streams {
            let mut runs = Vec::new();
            for _ in 0..plan.runs {
                let shape = measure::Shape {
                    prompt_tokens,
                    streams,
                    decode_tokens: plan.decode_tokens,
                };
                runs.push(measure::run(engine, shape, &mut prompts).await?);
            }
            reporter.row(&row::Row::of_medians(
                &header,
                prompt_tokens,
                streams,
                &runs,
            ))?;
        }
    }
    Ok(())
}

/// Refuses what would measure preemption or eviction instead of the model, naming every row at once.
fn check(plan: &Plan, room: Room) -> Result<(), BenchError> {
    let mut problems = Vec::new();
    for &prompt in &plan.prompt_tokens {
        let one = prompt as usize + plan.decode_tokens as usize;
        if one > room.context_max {
            problems.push(format!(
                "a prompt of {prompt} tokens and {} generated ones do not fit the context of {}; lower --prompt-tokens",
                plan.decode_tokens, room.context_max
            ));
            continue;
        }
        for &streams in &plan.streams {
            let all = one.next_multiple_of(replica_core::BLOCK_TOKENS) * streams as usize;
            if all > room.kv_tokens {
                problems.push(format!(
                    "{streams} streams of {one} tokens need KV for {all} tokens and there is room for {}; raise \
                     --kv-memory or lower --streams",
                    room.kv_tokens
                ));
            }
        }
    }
    for &streams in &plan.streams {
        if streams as usize > room.max_running {
            problems.push(format!(
                "{streams} streams are more than --max-running {} lets run at a time; raise it",
                room.max_running
            ));
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(BenchError::NoRoom(problems))
    }
}
