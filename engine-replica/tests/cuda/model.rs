//! A whole model on the simulated GPU has the fixture's tokens and the reference's bits, with and without prefix hits.

use std::path::{Path, PathBuf};

use cuda_sim::{Run, Variant};
use engine_replica::backend::cuda::Cuda;
use engine_replica::engine::step::{StepBatch, StepModel, StepSequence};
use engine_replica::loader;
use engine_replica::model::{self, BackendChoice, Capacity};
use serde_json::Value;

/// Positions that a KV block holds.
const BLOCK_TOKENS: usize = 16;
/// What transformers' logits may differ by, in the logits' own unit.
const TOLERANCE: f32 = 1e-4;
const CAPACITY: Capacity = Capacity {
    rows_max: 64,
    kv_blocks: 12,
};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/golden")
        .join(name)
}

/// Runs `body` on a real GPU if `PINION_TEST_GPU` is set, else in a process of its own on the simulated one.
fn on_gpu(test: &str, body: impl FnOnce()) {
    if cuda_sim::inside() || std::env::var_os("PINION_TEST_GPU").is_some() {
        return body();
    }
    if let Some(why) = cuda_sim::missing() {
        println!("skipped: {why}");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let run = Run::random(Variant::Plain, 1);
    let outcome = run.test(test, cache.path()).unwrap();
    assert!(outcome.passed, "{}", outcome.text);
}

/// The random Qwen3 on the GPU and on the reference.
fn models() -> [Box<dyn StepModel>; 2] {
    let weights = loader::open_weights(&golden("qwen3-random")).unwrap();
    let (config, tensors) = (&weights.config, &weights.tensors);
    let gpu = Cuda::open(0).unwrap();
    [
        model::load_on(gpu, config, tensors, CAPACITY).unwrap(),
        model::load(config, tensors, BackendChoice::Reference, CAPACITY).unwrap(),
    ]
}

/// The fixture's prompts, each with the logits after every token of it.
fn prompts() -> Vec<(Vec<u32>, Vec<Vec<f32>>)> {
    let text = std::fs::read(golden("qwen3-random.json")).unwrap();
    let fixture: Value = serde_json::from_slice(&text).unwrap();
    let rows = fixture["logits"].as_array().unwrap();
    let part = |row: &Value, key: &str| row[key].clone();
    rows.iter()
        .filter(|row| row["all"].is_array())
        .map(|row| {
            (
                serde_json::from_value(part(row, "ids")).unwrap(),
                serde_json::from_value(part(row, "all")).unwrap(),
            )
        })
        .collect()
}

/// The logits after the last of `tokens`, which stand at `from` and on.
fn feed(model: &mut dyn StepModel, tokens: &[u32], from: usize, blocks: &[u32]) -> Vec<f32> {
    let end = from + tokens.len();
    let positions: Vec<u32> = (from as u32..end as u32).collect();
    let sequence = StepSequence {
        rows: 0..tokens.len(),
        block_table: &blocks[..end.div_ceil(BLOCK_TOKENS)],
        wants_logits: true,
    };
    let batch = StepBatch {
        tokens,
        positions: &positions,
        sequences: &[sequence],
    };
    let mut logits = Vec::new();
    model.forward(&batch, &mut logits).unwrap();
    logits
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|x| x.to_bits()).collect()
}

fn best(logits: &[f32]) -> usize {
    let all = logits.iter().enumerate().rev();
    all.max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0
}

#[test]
fn a_random_qwen3_has_transformers_tokens_and_the_reference_s_bits() {
    on_gpu(
        "model::a_random_qwen3_has_transformers_tokens_and_the_reference_s_bits",
        || {
            let [mut gpu, mut reference] = models();
            let prompts = prompts();
            assert!(prompts.len() >= 3);
            let blocks = [7, 2, 11, 0, 5];
            for (ids, all) in &prompts {
                for (at, (&id, expect)) in ids.iter().zip(all).enumerate() {
                    let found = feed(&mut *gpu, &[id], at, &blocks);
                    assert_eq!(best(&found), best(expect), "after {at} of {ids:?}");
                    for (a, b) in found.iter().zip(expect) {
                        assert!((a - b).abs() <= TOLERANCE, "{a} where {b} was expected");
                    }
                    let same = feed(&mut *reference, &[id], at, &blocks);
                    assert_eq!(bits(&found), bits(&same));
                }
                let whole = feed(&mut *gpu, ids, 0, &[1, 3, 4, 6, 8]);
                let same = feed(&mut *reference, ids, 0, &[1, 3, 4, 6, 8]);
                assert_eq!(bits(&whole), bits(&same));
            }
        },
    );
}

#[test]
fn a_prefix_hit_changes_no_bit() {
    on_gpu("model::a_prefix_hit_changes_no_bit", || {
        let [mut gpu, _] = models();
        let tokens: Vec<u32> = (0..40).map(|i| 2 + i * 7 % 90).collect();
        let cold = feed(&mut *gpu, &tokens, 0, &[9, 1, 4]);
        let kept = 2 * BLOCK_TOKENS;
        let warm = feed(&mut *gpu, &tokens[kept..], kept, &[9, 1, 6]);
        assert_eq!(bits(&warm), bits(&cold));
        // Beside another sequence that shares the same blocks, each with a tail of its own.
        let other: Vec<u32> = tokens[kept..].iter().map(|t| t + 1).collect();
        let both = [&tokens[kept..], &other].concat();
        let tail = tokens.len() - kept;
        let positions: Vec<u32> = [0, 1]
            .iter()
            .flat_map(|_| kept as u32..tokens.len() as u32)
            .collect();
        let sequence = |rows, block_table| StepSequence {
            rows,
            block_table,
            wants_logits: true,
        };
        let batch = StepBatch {
            tokens: &both,
            positions: &positions,
            sequences: &[
                sequence(0..tail, &[9, 1, 2]),
                sequence(tail..2 * tail, &[9, 1, 3]),
            ],
        };
        let mut logits = Vec::new();
        gpu.forward(&batch, &mut logits).unwrap();
        assert_eq!(bits(&logits[..cold.len()]), bits(&cold));
    });
}

#[test]
fn a_mixture_of_experts_is_refused_with_what_to_do() {
    on_gpu(
        "model::a_mixture_of_experts_is_refused_with_what_to_do",
        || {
            let weights = loader::open_weights(&golden("qwen3moe-random")).unwrap();
            let gpu = Cuda::open(0).unwrap();
            let loaded = model::load_on(gpu, &weights.config, &weights.tensors, CAPACITY);
            let error = loaded.err().unwrap().to_string();
            assert_eq!(
                error,
                "the CUDA backend has no kernels for models with a mixture of experts; use `--device cpu`"
            );
        },
    );
}
