//! Replays a trace from standard input on every cell of replicas × cache sizes and prints one line per placement, against
//! `cache_aware_0.5/32/1.1`. BENCH.md says how it was used.
//!
//! ```text
//! zcat TRACE.jsonl.gz | cargo run --profile checked -p routing-policies --example replay -- block_tokens=512 \
//!     cache_tokens=262144,1048576,4194304 jitter_s=3 half=second seeds=5 rule rule:crowding=0 session_pin
//! ```
//!
//! A trace is JSON lines with `timestamp` (ms), `input_length`, `output_length` (tokens), `session_id` and `hash_ids` (prefix-chained).
#![expect(
    clippy::print_stdout,
    reason = "a tool that people read prints to standard output"
)]

use std::error::Error;

use routing_policies::placement::{Block, Settings};
use routing_policies::replay::{
    Outcome, Placement, Request, Ruled, Setup, arrivals, baseline, halves, run,
};

const AGAINST: &str = "cache_aware_0.5/32/1.1";

struct Options {
    block_tokens: u32,
    cache_tokens: Vec<u64>,
    replicas: Vec<usize>,
    offered_load: f64,
    jitter_s: f64,
    speed: f64,
    half: String,
    seeds: u64,
    cells: bool,
    placements: Vec<String>,
}

type Failed = Box<dyn Error>;

fn main() -> Result<(), Failed> {
    let options = options()?;
    let mut requests = read(options.block_tokens)?;
    arrivals(&mut requests, options.jitter_s, options.speed);
    let (first, second) = halves(&requests);
    let requests = match options.half.as_str() {
        "first" => first,
        "second" => second,
        _ => &requests,
    };
    let grid: Vec<Setup> = options
        .replicas
        .iter()
        .flat_map(|&replicas| {
            options
                .cache_tokens
                .iter()
                .map(move |&cache_tokens| (replicas, cache_tokens))
        })
        .map(|(replicas, cache_tokens)| Setup {
            replicas,
            cache_tokens,
            block_tokens: options.block_tokens,
            offered_load: options.offered_load,
        })
        .collect();
    let against = play(&options, requests, &grid, AGAINST)?;
    println!("{} requests, {} half", requests.len(), options.half);
    println!(
        "| placement | hit | of pool | imbalance | mean | p90 | p99 | worst p90 |\n|---|---|---|---|---|---|---|---|"
    );
    for name in &options.placements {
        let rows = play(&options, requests, &grid, name)?;
        line(&options, &grid, name, &rows, &against);
    }
    Ok(())
}

/// For each cell the outcomes of all seeds.
fn play(
    options: &Options,
    requests: &[Request],
    grid: &[Setup],
    name: &str,
) -> Result<Vec<Vec<Outcome>>, Failed> {
    let cell = |setup: &Setup| {
        let one = |seed| Ok(run(setup, requests, &mut *placement(name, setup, seed)?));
        (1..=options.seeds).map(one).collect()
    };
    grid.iter().map(cell).collect()
}

fn placement(name: &str, setup: &Setup, seed: u64) -> Result<Box<dyn Placement>, Failed> {
    let mut parts = name.split(':');
    if parts.next() != Some("rule") {
        return baseline::named(name, setup, seed)
            .ok_or_else(|| format!("no placement is called `{name}`").into());
    }
    let mut settings = Settings::default();
    for part in parts {
        let (key, value) = part.split_once('=').ok_or("a setting is `name=number`")?;
        let value: f64 = value.parse()?;
        match key {
            "crowding" => settings.crowding = value,
            "in_flight" => settings.in_flight = value,
            "common_share" => settings.common_share = value,
            "stay" => settings.stay = value,
            _ => return Err(format!("no setting is called `{key}`").into()),
        }
    }
    Ok(Box::new(Ruled::new(setup, settings, seed)))
}

fn line(
    options: &Options,
    grid: &[Setup],
    name: &str,
    rows: &[Vec<Outcome>],
    against: &[Vec<Outcome>],
) {
    let mean = |of: &dyn Fn(&Outcome) -> f64| {
        let all: Vec<f64> = rows.iter().flatten().map(of).collect();
        all.iter().sum::<f64>() / all.len() as f64
    };
    let over = |of: &dyn Fn(&Outcome) -> f64| -> Vec<f64> {
        rows.iter()
            .zip(against)
            .map(|(row, base)| (log_mean(row, of) - log_mean(base, of)).exp())
            .collect()
    };
    let geometric =
        |ratios: &[f64]| (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let p90 = over(&|o| o.ttft_p90_s);
    println!(
        "| {name} | {:.3} | {:.3} | {:.2} | {:.3} | {:.3} | {:.3} | {:.2} |",
        mean(&|o| o.hit),
        mean(&|o| o.of_pool),
        mean(&|o| o.imbalance),
        geometric(&over(&|o| o.ttft_mean_s)),
        geometric(&p90),
        geometric(&over(&|o| o.ttft_p99_s)),
        p90.iter().copied().fold(0.0, f64::max),
    );
    if options.cells {
        for (setup, ratio) in grid.iter().zip(&p90) {
            println!(
                "  {} replicas, {} tokens: p90 {ratio:.3}",
                setup.replicas, setup.cache_tokens
            );
        }
    }
}

fn log_mean(row: &[Outcome], of: &dyn Fn(&Outcome) -> f64) -> f64 {
    row.iter().map(|outcome| of(outcome).ln()).sum::<f64>() / row.len() as f64
}

fn options() -> Result<Options, Failed> {
    let mut options = Options {
        block_tokens: 512,
        cache_tokens: vec![262_144, 1_048_576, 4_194_304],
        replicas: vec![4, 8, 16],
        offered_load: 0.9,
        jitter_s: 0.0,
        speed: 1.0,
        half: "whole".to_owned(),
        seeds: 1,
        cells: false,
        placements: Vec::new(),
    };
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("block_tokens", value)) => options.block_tokens = value.parse()?,
            Some(("cache_tokens", value)) => {
                options.cache_tokens = value.split(',').map(str::parse).collect::<Result<_, _>>()?
            }
            Some(("replicas", value)) => {
                options.replicas = value.split(',').map(str::parse).collect::<Result<_, _>>()?
            }
            Some(("offered_load", value)) => options.offered_load = value.parse()?,
            Some(("jitter_s", value)) => options.jitter_s = value.parse()?,
            Some(("speed", value)) => options.speed = value.parse()?,
            Some(("half", value)) => options.half = value.to_owned(),
            Some(("seeds", value)) => options.seeds = value.parse()?,
            _ if argument == "cells" => options.cells = true,
            _ if argument == "all" => options
                .placements
                .extend(baseline::NAMES.map(str::to_owned)),
            _ => options.placements.push(argument),
        }
    }
    Ok(options)
}

fn read(block_tokens: u32) -> Result<Vec<Request>, Failed> {
    let mut requests = Vec::new();
    for line in std::io::stdin().lines() {
        let row: serde_json::Value = serde_json::from_str(&line?)?;
        let number = |name: &str| {
            row[name]
                .as_u64()
                .ok_or_else(|| format!("`{name}` is missing"))
        };
        let ids = row["hash_ids"].as_array().ok_or("`hash_ids` is missing")?;
        let block = |id: &serde_json::Value| {
            let key = id.as_u64().ok_or("a hash id is no number")?;
            Ok::<_, Failed>(Block {
                key,
                tokens: block_tokens,
            })
        };
        requests.push(Request {
            at_s: number("timestamp")? as f64 / 1_000.0,
            prompt_tokens: u32::try_from(number("input_length")?)?,
            output_tokens: u32::try_from(number("output_length")?)?,
            session: number("session_id")?,
            blocks: ids.iter().map(block).collect::<Result<_, _>>()?,
        });
    }
    Ok(requests)
}
