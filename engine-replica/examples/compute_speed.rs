//! How fast the CPU backend computes a model of SmolLM2-135M's shape with random `Q4_1` weights: no files needed.
//!
//! `cargo run --profile checked -p engine-replica --example compute_speed [threads [rows]]`; with `rows` only steps of
//! so many rows a stream.
//!
//! Sketch to read it by: 0.27 GFLOP a token in the linear layers (0.21 without the output), 84 MB of packed weights
//! read a decode step.
#![expect(clippy::print_stdout, reason = "its purpose")]
#![expect(clippy::disallowed_methods, reason = "measures real time")]

use std::error::Error;
use std::time::Instant;

use engine_replica::engine::step::{StepBatch, StepModel, StepSequence};
use engine_replica::loader::tensor::{DType, TensorSource, TensorView};
use engine_replica::model::config::{Family, ModelConfig, RopeStyle};
use engine_replica::model::{BackendChoice, Capacity, load};

const HIDDEN: usize = 576;
const INNER: usize = 1_536;
const VOCAB: usize = 49_152;
const ROWS_MAX: usize = 512;
const KV_BLOCKS: usize = 600;
const REPEATS: usize = 9;

/// The same bytes under every name: numbers do not change the time.
struct Random {
    quantised: Vec<u8>,
    ones: Vec<u8>,
}

impl TensorSource for Random {
    fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        if name.ends_with("norm.weight") {
            return Some(TensorView {
                dtype: DType::F32,
                rows: 1,
                cols: HIDDEN,
                data: &self.ones,
            });
        }
        let (rows, cols) = match name.rsplit('.').nth(1)? {
            "embed_tokens" => (VOCAB, HIDDEN),
            "q_proj" | "o_proj" => (HIDDEN, HIDDEN),
            "k_proj" | "v_proj" => (HIDDEN / 3, HIDDEN),
            "gate_proj" | "up_proj" => (INNER, HIDDEN),
            _ => (HIDDEN, INNER),
        };
        let data = &self.quantised[..DType::Q4_1.bytes(rows * cols)];
        Some(TensorView {
            dtype: DType::Q4_1,
            rows,
            cols,
            data,
        })
    }
}

fn random() -> Random {
    // Blocks of scale 1/512 and minimum −1/64, and nibbles from a linear congruence.
    let mut state = 1u32;
    let mut block = || {
        let mut bytes = vec![0x00, 0x18, 0x00, 0xa4];
        bytes.extend((0..16).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        }));
        bytes
    };
    let blocks = VOCAB * HIDDEN / 32;
    let quantised = (0..blocks).flat_map(|_| block()).collect();
    let ones = 1.0f32.to_le_bytes().repeat(HIDDEN);
    Random { quantised, ones }
}

/// Median seconds, and mean CPU seconds, of one step of `streams` sequences with `rows` new tokens each, after `context` tokens.
fn step_seconds(
    model: &mut dyn StepModel,
    (streams, rows, context): (usize, usize, usize),
) -> Result<(f64, f64), Box<dyn Error>> {
    let tokens: Vec<u32> = (0..(streams * rows) as u32)
        .map(|t| t * 7 % VOCAB as u32)
        .collect();
    let positions: Vec<u32> = (0..streams)
        .flat_map(|_| (context..context + rows).map(|p| p as u32))
        .collect();
    let blocks = (context + rows).div_ceil(16) as u32;
    let tables: Vec<Vec<u32>> = (0..streams as u32)
        .map(|s| (s * blocks..(s + 1) * blocks).collect())
        .collect();
    let sequences: Vec<_> = tables
        .iter()
        .enumerate()
        .map(|(s, table)| StepSequence {
            rows: s * rows..(s + 1) * rows,
            block_table: table,
            wants_logits: true,
        })
        .collect();
    let batch = StepBatch {
        tokens: &tokens,
        positions: &positions,
        sequences: &sequences,
    };
    let mut logits = Vec::new();
    let mut seconds = Vec::new();
    let cpu = cpu_seconds();
    for _ in 0..REPEATS {
        let start = Instant::now();
        model.forward(&batch, &mut logits)?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok((seconds[REPEATS / 2], (cpu_seconds() - cpu) / REPEATS as f64))
}

/// CPU time of all threads so far: what a busy machine leaves comparable.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn main() -> Result<(), Box<dyn Error>> {
    let threads = std::env::args().nth(1).map(|t| t.parse()).transpose()?;
    let only: Option<usize> = std::env::args().nth(2).map(|t| t.parse()).transpose()?;
    let config = ModelConfig {
        family: Family::Llama,
        vocab: VOCAB,
        hidden: HIDDEN,
        layers: 30,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        intermediate: INNER,
        context_max: 8_192,
        rope_theta: 100_000.0,
        rope_style: RopeStyle::Half,
        rms_eps: 1e-5,
        tied_output: true,
        mixture: None,
    };
    let capacity = Capacity {
        rows_max: ROWS_MAX,
        kv_blocks: KV_BLOCKS,
    };
    let start = Instant::now();
    let mut model = load(&config, &random(), BackendChoice::Cpu { threads }, capacity)?;
    println!("packed in {:.2} s", start.elapsed().as_secs_f64());
    for (streams, rows, context) in [
        (1, 1, 64),
        (1, 1, 2_048),
        (4, 1, 64),
        (4, 1, 2_048),
        (8, 1, 64),
        (16, 1, 64),
        (1, 32, 2_048),
        (1, 512, 0),
        (1, 512, 1_536),
    ] {
        if only.is_some_and(|only| only != rows) {
            continue;
        }
        let (seconds, cpu) = step_seconds(&mut *model, (streams, rows, context))?;
        let per_second = (streams * rows) as f64 / seconds;
        println!(
            "{streams:>2} streams × {rows:>3} rows at {context:>4}: {:>8.2} ms ({:>8.2} ms CPU), {per_second:>7.1} tokens/s",
            seconds * 1e3,
            cpu * 1e3
        );
    }
    Ok(())
}
