//! Invariant A15 on random tiny models: a row's logits depend on the tokens before it in its own sequence, and on
//! nothing else.

use std::collections::HashMap;

use proptest::prelude::*;

use super::config::{Family, MixtureConfig, RopeStyle};
use super::*;
use crate::backend::testing::{DTYPES, Random, Tensor, assert_same_bits};
use crate::engine::step::{StepBatch, StepSequence};
use crate::loader::tensor::{DType, TensorView};
use replica_core::BLOCK_TOKENS;

/// Tensors in memory under their Hugging Face names.
#[derive(Clone, Debug, Default)]
struct Tensors(HashMap<String, Tensor>);

impl TensorSource for Tensors {
    fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        self.0.get(name).map(Tensor::view)
    }
}

/// A config whose shapes no kernel likes but the quantised types allow.
fn tiny_config(family: Family) -> ModelConfig {
    ModelConfig {
        family,
        vocab: 21,
        hidden: 32,
        layers: 2,
        heads: 6,
        kv_heads: 2,
        head_dim: 10,
        intermediate: 64,
        context_max: 128,
        rope_theta: 10_000.0,
        rope_style: RopeStyle::Half,
        rms_eps: 1e-5,
        tied_output: true,
        mixture: None,
    }
}

/// Random tensors for `config`; weights take the storage types in turn where their rows allow.
fn tensors(config: &ModelConfig, seed: u64) -> Tensors {
    let mut random = Random(seed);
    let mut made = Tensors::default();
    let mut add = |name: String, rows: usize, cols: usize| {
        let types = if rows == 1 {
            1
        } else if cols.is_multiple_of(32) {
            DTYPES.len()
        } else {
            3
        };
        let dtype = DTYPES[random.below(types)];
        let tensor = random.tensor(dtype, rows, cols, if rows == 1 { 1.5 } else { 0.6 });
        made.0.insert(name, tensor);
    };
    let (hidden, dim) = (config.hidden, config.head_dim);
    let (q, kv) = (config.heads * dim, config.kv_heads * dim);
    add("model.embed_tokens.weight".into(), config.vocab, hidden);
    add("model.norm.weight".into(), 1, hidden);
    if !config.tied_output {
        add("lm_head.weight".into(), config.vocab, hidden);
    }
    for layer in 0..config.layers {
        let mut add = |name: &str, rows, cols| {
            add(format!("model.layers.{layer}.{name}.weight"), rows, cols);
        };
        add("input_layernorm", 1, hidden);
        add("self_attn.q_proj", q, hidden);
        add("self_attn.k_proj", kv, hidden);
        add("self_attn.v_proj", kv, hidden);
        add("self_attn.o_proj", hidden, q);
        if config.family == Family::Qwen3 {
            add("self_attn.q_norm", 1, dim);
            add("self_attn.k_norm", 1, dim);
        }
        add("post_attention_layernorm", 1, hidden);
        let mut network = |part: &str, inner: usize| {
            add(&format!("{part}.gate_proj"), inner, hidden);
            add(&format!("{part}.up_proj"), inner, hidden);
            add(&format!("{part}.down_proj"), hidden, inner);
        };
        match config.mixture_of(layer) {
            None => network("mlp", config.intermediate),
            Some(mixture) => {
                for expert in 0..mixture.experts {
                    network(&format!("mlp.experts.{expert}"), mixture.intermediate);
                }
                add("mlp.gate", mixture.experts, hidden);
            }
        }
    }
    made
}

const CAPACITY: Capacity = Capacity {
    rows_max: 128,
    kv_blocks: 40,
};

fn model(config: &ModelConfig, tensors: &Tensors, choice: BackendChoice) -> Box<dyn StepModel> {
    load(config, tensors, choice, CAPACITY).unwrap()
}

/// One sequence on its way through a model.
struct Run {
    tokens: Vec<u32>,
    blocks: Vec<u32>,
    done: usize,
}

/// Computes the next `chunk` tokens of each run in one step; the logits after each chunk, run by run.
fn step(model: &mut dyn StepModel, runs: &mut [Run], chunks: &[usize]) -> Vec<Vec<f32>> {
    let (mut tokens, mut positions, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
    for (run, &chunk) in runs.iter_mut().zip(chunks) {
        let range = run.done..(run.done + chunk).min(run.tokens.len());
        ranges.push(tokens.len()..tokens.len() + range.len());
        tokens.extend(&run.tokens[range.clone()]);
        positions.extend(range.clone().map(|p| p as u32));
        run.done = range.end;
    }
    let sequences: Vec<_> = ranges
        .into_iter()
        .zip(&*runs)
        .filter(|(rows, _)| !rows.is_empty())
        .map(|(rows, run)| StepSequence {
            rows,
            block_table: &run.blocks,
            wants_logits: true,
        })
        .collect();
    let mut logits = Vec::new();
    let batch = StepBatch {
        tokens: &tokens,
        positions: &positions,
        sequences: &sequences,
    };
    model.forward(&batch, &mut logits).unwrap();
    assert_eq!(logits.len(), sequences.len() * model.vocab());
    logits.chunks(model.vocab()).map(<[f32]>::to_vec).collect()
}

/// The logits after the last of `tokens`, in one step and alone.
fn alone(model: &mut dyn StepModel, tokens: &[u32]) -> Vec<f32> {
    let blocks = (0..tokens.len().div_ceil(BLOCK_TOKENS) as u32).collect();
    let mut runs = [Run {
        tokens: tokens.to_vec(),
        blocks,
        done: 0,
    }];
    step(model, &mut runs, &[tokens.len()]).remove(0)
}

/// Sequences with their cuts into chunks, and the order in which their blocks are taken from the pool.
#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    family: Family,
    style: RopeStyle,
    tied: bool,
    mixture: Option<MixtureConfig>,
    sequences: Vec<(Vec<u32>, Vec<usize>)>,
    order: Vec<u32>,
    threads: usize,
}

/// Experts in both layers, in the second alone or, as `dense_layers` says, in the first alone.
fn mixture() -> impl Strategy<Value = MixtureConfig> {
    let layers = prop_oneof![Just((1, vec![])), Just((2, vec![])), Just((1, vec![1]))];
    (1..9usize, 1..9usize, any::<bool>(), layers).prop_map(
        |(experts, chosen, renormalise, (every, dense_layers))| MixtureConfig {
            experts,
            chosen: chosen.min(experts),
            intermediate: 32,
            renormalise,
            every,
            dense_layers,
        },
    )
}

fn plan() -> impl Strategy<Value = Plan> {
    let sequence = (
        prop::collection::vec(0..21u32, 1..50),
        prop::collection::vec(1..20usize, 1..8),
    );
    (
        any::<u64>(),
        prop_oneof![Just(Family::Llama), Just(Family::Qwen3)],
        prop_oneof![Just(RopeStyle::Half), Just(RopeStyle::Interleaved)],
        any::<bool>(),
        prop::option::of(mixture()),
        prop::collection::vec(sequence, 1..4),
        Just((0..CAPACITY.kv_blocks as u32).collect::<Vec<_>>()).prop_shuffle(),
        1..4usize,
    )
        .prop_map(
            |(seed, family, style, tied, mixture, sequences, order, threads)| Plan {
                seed,
                family,
                style,
                tied,
                mixture,
                sequences,
                order,
                threads,
            },
        )
}

impl Plan {
    fn config(&self) -> ModelConfig {
        ModelConfig {
            rope_style: self.style,
            tied_output: self.tied,
            mixture: self.mixture.clone(),
            ..tiny_config(self.family)
        }
    }

    /// The sequences with blocks from the pool, in this plan's order.
    fn runs(&self) -> Vec<Run> {
        let mut free = self.order.iter().copied();
        self.sequences
            .iter()
            .map(|(tokens, _)| Run {
                tokens: tokens.clone(),
                blocks: free
                    .by_ref()
                    .take(tokens.len().div_ceil(BLOCK_TOKENS))
                    .collect(),
                done: 0,
            })
            .collect()
    }
}

/// Runs all sequences side by side, each in its own chunks, and compares each chunk's logits with `alone`.
fn check_side_by_side(plan: &Plan, model: &mut dyn StepModel, single: &mut dyn StepModel) {
    let mut runs = plan.runs();
    let mut turn = 0;
    while runs.iter().any(|run| run.done < run.tokens.len()) {
        let chunks: Vec<usize> = plan
            .sequences
            .iter()
            .map(|(_, chunks)| chunks[turn % chunks.len()])
            .collect();
        let before: Vec<usize> = runs.iter().map(|run| run.done).collect();
        let mut logits = step(model, &mut runs, &chunks).into_iter();
        for (run, before) in runs.iter().zip(before) {
            if run.done > before {
                let want = alone(single, &run.tokens[..run.done]);
                assert_same_bits(&logits.next().unwrap(), &want, "side by side");
            }
        }
        turn += 1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn logits_depend_on_the_tokens_before_and_nothing_else(plan in plan()) {
        let config = plan.config();
        let tensors = tensors(&config, plan.seed);
        let mut reference = model(&config, &tensors, BackendChoice::Reference);
        let threads = Some(plan.threads);
        let mut cpu = model(&config, &tensors, BackendChoice::Cpu { threads });
        // The reference, cut and batched, against itself whole and alone; then the CPU against the reference.
        let mut single = model(&config, &tensors, BackendChoice::Reference);
        check_side_by_side(&plan, &mut *reference, &mut *single);
        check_side_by_side(&plan, &mut *cpu, &mut *single);
    }

    #[test]
    fn a_reused_prefix_gives_the_logits_of_a_computed_one(plan in plan(), shared in 1..3usize) {
        let config = plan.config();
        let tensors = tensors(&config, plan.seed);
        for choice in [BackendChoice::Reference, BackendChoice::Cpu { threads: Some(plan.threads) }] {
            let mut cached = model(&config, &tensors, choice);
            let mut runs = plan.runs();
            let prefix: Vec<u32> = (0..shared * BLOCK_TOKENS).map(|i| (i % 19) as u32).collect();
            // A sequence of its own writes the prefix's blocks; the others then point at them.
            let blocks: Vec<u32> = plan.order.iter().rev().take(shared).copied().collect();
            let mut writer = [Run { tokens: prefix.clone(), blocks: blocks.clone(), done: 0 }];
            step(&mut *cached, &mut writer, &[prefix.len()]);
            let mut single = model(&config, &tensors, choice);
            for run in &mut runs {
                run.tokens.splice(0..0, prefix.iter().copied());
                run.blocks.splice(0..0, blocks.iter().copied());
                run.done = prefix.len();
                let tokens = run.tokens.clone();
                let got = step(&mut *cached, std::slice::from_mut(run), &[tokens.len()]).remove(0);
                assert_same_bits(&got, &alone(&mut *single, &tokens), "after a reused prefix");
            }
        }
    }
}

#[test]
fn the_load_of_every_expert_is_counted_once_for_each_choice() {
    let mixture = MixtureConfig {
        experts: 5,
        chosen: 3,
        intermediate: 32,
        renormalise: true,
        every: 2,
        dense_layers: Vec::new(),
    };
    let config = ModelConfig {
        mixture: Some(mixture),
        ..tiny_config(Family::Qwen3)
    };
    let tensors = tensors(&config, 4);
    let loads = [
        BackendChoice::Reference,
        BackendChoice::Cpu { threads: Some(2) },
    ]
    .map(|choice| {
        let mut model = model(&config, &tensors, choice);
        let load = model.expert_load().unwrap();
        alone(&mut *model, &[1, 2, 3, 4, 5, 6, 7]);
        load.layers()
    });
    assert_eq!(loads[0], loads[1]);
    let [layer] = loads[0][..] else {
        panic!("one layer of two has experts: {:?}", loads[0])
    };
    assert_eq!(layer.layer, 1);
    // 21 choices of 5 experts, none of which is chosen twice for a row.
    let busiest = layer.busiest_over_mean * 21.0 / 5.0;
    assert!((5.0..7.5).contains(&busiest), "{layer:?}");
    let dense = tiny_config(Family::Qwen3);
    let tensors = self::tensors(&dense, 4);
    assert!(
        model(&dense, &tensors, BackendChoice::Reference)
            .expert_load()
            .is_none()
    );
}

#[test]
fn only_wanted_logits_are_returned_in_order() {
    let config = tiny_config(Family::Llama);
    let tensors = tensors(&config, 1);
    let mut cpu = model(&config, &tensors, BackendChoice::Cpu { threads: None });
    let sequences = [(0..2, [0], true), (2..3, [1], false), (3..5, [2], true)].map(
        |(rows, ref blocks, wants_logits)| StepSequence {
            rows,
            block_table: match blocks {
                [0] => &[0],
                [1] => &[1],
                _ => &[2],
            },
            wants_logits,
        },
    );
    let batch = StepBatch {
        tokens: &[1, 2, 3, 4, 5],
        positions: &[0, 1, 0, 0, 1],
        sequences: &sequences,
    };
    let mut logits = vec![0.5; 3];
    cpu.forward(&batch, &mut logits).unwrap();
    let mut want = alone(&mut *cpu, &[1, 2]);
    want.extend(alone(&mut *cpu, &[4, 5]));
    assert_same_bits(&logits, &want, "two of three");
}

#[test]
fn a_refused_step_changes_nothing_and_says_why() {
    let config = tiny_config(Family::Qwen3);
    let tensors = tensors(&config, 2);
    let mut cpu = model(&config, &tensors, BackendChoice::Cpu { threads: Some(1) });
    let sequences = [StepSequence {
        rows: 0..1,
        block_table: &[0],
        wants_logits: true,
    }];
    let batch = StepBatch {
        tokens: &[21],
        positions: &[0],
        sequences: &sequences,
    };
    let error = cpu.forward(&batch, &mut Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "token id 21 is not below the vocabulary's 21"
    );
}

/// Loads with the tensors changed, and compares what is said.
#[track_caller]
fn check_refusal(change: impl FnOnce(&mut ModelConfig, &mut Tensors), expect: &[&str]) {
    let mut config = tiny_config(Family::Qwen3);
    let mut tensors = tensors(&config, 3);
    change(&mut config, &mut tensors);
    let refused = load(&config, &tensors, BackendChoice::Reference, CAPACITY);
    let said = refused.err().map_or(String::new(), |e| e.to_string());
    assert!(expect.iter().all(|e| said.contains(e)), "{said}");
}

#[test]
fn every_missing_or_wrong_tensor_is_named_at_once() {
    check_refusal(
        |_, tensors| {
            tensors.0.remove("model.norm.weight");
            tensors.0.remove("model.layers.1.self_attn.k_norm.weight");
            let wrong = Random(1).tensor(DType::F32, 64, 31, 1.0);
            tensors
                .0
                .insert("model.layers.0.mlp.up_proj.weight".into(), wrong);
            if let Some(short) = tensors.0.get_mut("model.layers.0.mlp.down_proj.weight") {
                short.data.pop();
            }
        },
        &[
            "`model.norm.weight` is missing, expected shape (1, 32)",
            "`model.layers.1.self_attn.k_norm.weight` is missing, expected shape (1, 10)",
            "`model.layers.0.mlp.up_proj.weight` has shape (64, 31), expected (64, 32)",
            "`model.layers.0.mlp.down_proj.weight` has ",
        ],
    );
    check_refusal(
        |config, _| {
            config.kv_heads = 4;
            config.head_dim = 9;
            config.layers = 0;
        },
        &[
            "layers is 0",
            "kv_heads 4 does not divide heads 6",
            "head_dim 9 is not even",
        ],
    );
    check_refusal(
        |config, tensors| {
            config.hidden = 31;
            let odd = Tensor {
                dtype: DType::Q4_0,
                rows: 21,
                cols: 31,
                data: Vec::new(),
            };
            tensors.0.insert("model.embed_tokens.weight".into(), odd);
        },
        &["`model.embed_tokens.weight` is Q4_0 with 31 columns, no multiple of 32"],
    );
    check_refusal(
        |config, _| config.tied_output = false,
        &["`lm_head.weight` is missing, expected shape (21, 32)"],
    );
}

#[test]
fn what_is_wrong_with_experts_is_named_too() {
    check_refusal(
        |config, _| {
            config.mixture = Some(MixtureConfig {
                experts: 3,
                chosen: 4,
                intermediate: 0,
                renormalise: true,
                every: 1,
                dense_layers: vec![2],
            });
        },
        &[
            "the count of experts chosen for a token is 4, expected 1 to 3",
            "the feed-forward size of an expert is 0, expected 1 to",
            "layer 2 is said to have no experts, and there are 2 layers",
        ],
    );
    check_refusal(
        |config, _| {
            config.mixture = Some(MixtureConfig {
                experts: 2,
                chosen: 2,
                intermediate: 32,
                renormalise: true,
                every: 2,
                dense_layers: Vec::new(),
            });
        },
        &[
            "`model.layers.1.mlp.gate.weight` is missing, expected shape (2, 32)",
            "`model.layers.1.mlp.experts.1.down_proj.weight` is missing, expected shape (32, 32)",
        ],
    );
}
