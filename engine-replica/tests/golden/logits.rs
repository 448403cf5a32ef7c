//! Logits against transformers in f32 over the same (dequantised) weights.

use std::path::Path;

use engine_replica::loader;
use engine_replica::model::BackendChoice;
use serde::Deserialize;
use serde_json::Value;

use crate::fixtures;
use crate::session::Session;

/// The last position's logits of one prompt: all of them, or the largest and every `stride`th.
#[derive(Deserialize)]
struct Row {
    ids: Vec<u32>,
    logsumexp: Option<f64>,
    logits: Option<Vec<f32>>,
    top: Option<Vec<(usize, f32)>>,
    stride: Option<Vec<f32>>,
    /// Logits of every position.
    all: Option<Vec<Vec<f32>>>,
}

const BACKENDS: [BackendChoice; 2] = [
    BackendChoice::Reference,
    BackendChoice::Cpu { threads: None },
];

fn rows(fixture: &Value) -> Vec<Row> {
    fixtures::part(fixture, "logits")
}

/// The largest distance from the fixture.
fn distance(found: &[f32], row: &Row, stride: usize) -> f32 {
    let apart = |a: f32, b: f32| (a - b).abs();
    let mut worst = 0.0_f32;
    for (a, b) in found.iter().zip(row.logits.iter().flatten()) {
        worst = worst.max(apart(*a, *b));
    }
    for &(id, value) in row.top.iter().flatten() {
        worst = worst.max(apart(found[id], value));
    }
    for (a, b) in found
        .iter()
        .step_by(stride)
        .zip(row.stride.iter().flatten())
    {
        worst = worst.max(apart(*a, *b));
    }
    if let Some(expect) = row.logsumexp {
        let largest = f64::from(found.iter().copied().fold(f32::MIN, f32::max));
        let sum: f64 = found.iter().map(|&x| (f64::from(x) - largest).exp()).sum();
        worst = worst.max((largest + sum.ln() - expect).abs() as f32);
    }
    worst
}

/// Compares every row of at most `longest` tokens; the tolerance is in the logits' own unit.
#[track_caller]
fn check(session: &mut Session, rows: &[Row], stride: usize, longest: usize, tolerance: f32) {
    let mut worst = 0.0_f32;
    for row in rows.iter().filter(|row| row.ids.len() <= longest) {
        session.reset();
        let found = session.feed(&row.ids);
        if let Some(logits) = &row.logits {
            assert_eq!(found.len(), logits.len());
        }
        worst = worst.max(distance(&found, row, stride));
        session.reset();
        for (id, expect) in row.ids.iter().zip(row.all.iter().flatten()) {
            let found = session.feed(&[*id]);
            assert_eq!(found.len(), expect.len());
            for (a, b) in found.iter().zip(expect) {
                worst = worst.max((a - b).abs());
            }
        }
    }
    println!("largest distance {worst}, allowed {tolerance}");
    assert!(
        worst <= tolerance,
        "largest distance {worst}, allowed {tolerance}"
    );
}

#[track_caller]
fn check_folder(folder: &Path, fixture: &str, tolerance: f32) {
    let weights = loader::open_weights(folder).unwrap();
    let rows = rows(&fixtures::read(fixture));
    // The scalar backend takes half a minute for a long prompt.
    for (backend, longest) in BACKENDS.into_iter().zip([600, usize::MAX]) {
        check(
            &mut Session::new(&weights, backend),
            &rows,
            1,
            longest,
            tolerance,
        );
    }
}

#[test]
fn a_random_qwen3_has_transformers_logits() {
    check_folder(&fixtures::path("qwen3-random"), "qwen3-random.json", 1e-4);
}

#[test]
fn a_random_qwen3_with_experts_has_transformers_logits() {
    check_folder(
        &fixtures::path("qwen3moe-random"),
        "qwen3moe-random.json",
        1e-4,
    );
}

#[test]
fn a_qwen3_with_experts_in_one_layer_of_four_and_plain_weights_has_transformers_logits() {
    check_folder(
        &fixtures::path("qwen3moe-mixed"),
        "qwen3moe-mixed.json",
        1e-4,
    );
}

#[test]
fn a_random_llama_in_shards_has_transformers_logits() {
    check_folder(&fixtures::path("llama-random"), "llama-random.json", 1e-4);
}

#[test]
fn abacus_has_transformers_logits() {
    check_folder(&fixtures::abacus(), "abacus.json", 1e-3);
}

#[test]
fn smollm2_has_the_logits_of_its_dequantised_weights() {
    let Some(path) = fixtures::smollm2() else {
        return;
    };
    let weights = loader::open_weights(&path).unwrap();
    let fixture = fixtures::read("smollm2.json");
    let stride = fixtures::part(&fixture, "stride");
    let rows = rows(&fixture);
    check(
        &mut Session::new(&weights, BACKENDS[1]),
        &rows,
        stride,
        usize::MAX,
        5e-4,
    );
    check(
        &mut Session::new(&weights, BACKENDS[0]),
        &rows,
        stride,
        4,
        5e-4,
    );
}
