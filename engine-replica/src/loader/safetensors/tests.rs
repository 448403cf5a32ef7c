//! Hugging Face folders that are right and wrong, made from the tiny models of `tests/golden` and the built-in one.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::loader::tensor::{DType, TensorSource};
use crate::loader::{GenerationDefaults, LoadError, open, open_weights};
use crate::model::config::{Family, MixtureConfig, RopeStyle};

fn golden(name: &str) -> PathBuf {
    let folder = match name {
        "abacus" => "models",
        _ => "../tests/golden",
    };
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(folder)
        .join(name)
}

/// A copy of a golden folder that a test may spoil.
fn copy(name: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(golden(name)).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    folder
}

fn edit(folder: &TempDir, file: &str, changes: &[(&str, Value)]) {
    let path = folder.path().join(file);
    let mut json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for (pointer, value) in changes {
        json[pointer] = value.clone();
    }
    std::fs::write(path, json.to_string()).unwrap();
}

fn problems<T>(result: Result<T, LoadError>) -> Vec<String> {
    result
        .err()
        .expect("the folder should be refused")
        .problems()
        .to_vec()
}

#[test]
fn the_abacus_folder_opens_whole() {
    let model = open(&golden("abacus")).unwrap();
    assert_eq!(model.name, "abacus");
    let config = &model.weights.config;
    assert_eq!(
        (config.family, config.rope_style, config.tied_output),
        (Family::Qwen3, RopeStyle::Half, true)
    );
    assert_eq!(
        (
            config.vocab,
            config.hidden,
            config.layers,
            config.context_max
        ),
        (640, 128, 4, 4096)
    );
    assert_eq!(model.eos, [631, 633]);
    assert_eq!(model.tokenizer.len(), 640);
    let defaults = GenerationDefaults {
        temperature: Some(0.0),
        max_new_tokens: Some(512),
        ..GenerationDefaults::default()
    };
    assert_eq!(model.generation, defaults);
    let embed = model
        .weights
        .tensors
        .tensor("model.embed_tokens.weight")
        .unwrap();
    assert_eq!(
        (embed.dtype, embed.rows, embed.cols, embed.data.len()),
        (DType::Bf16, 640, 128, 640 * 128 * 2)
    );
}

#[test]
fn a_sharded_folder_opens_through_its_index() {
    let weights = open_weights(&golden("llama-random")).unwrap();
    assert_eq!(weights.config.family, Family::Llama);
    assert_eq!(weights.tensors.names().len(), 2 + 3 * 9);
    let norm = weights.tensors.tensor("model.norm.weight").unwrap();
    assert_eq!((norm.dtype, norm.rows, norm.cols), (DType::F16, 1, 36));
}

#[test]
fn a_folder_with_experts_opens_with_its_mixture() {
    let config = open_weights(&golden("qwen3moe-mixed")).unwrap().config;
    let mixture = MixtureConfig {
        experts: 8,
        chosen: 2,
        intermediate: 20,
        renormalise: false,
        every: 2,
        dense_layers: vec![3],
    };
    assert_eq!(
        (config.family, &config.mixture),
        (Family::Qwen3, &Some(mixture))
    );
    let sparse: Vec<usize> = (0..4).filter(|&i| config.mixture_of(i).is_some()).collect();
    assert_eq!(sparse, [1]);
}

#[test]
fn experts_that_do_not_fit_their_config_are_refused_all_at_once() {
    let folder = copy("qwen3moe-random");
    let changes = [
        ("num_local_experts", json!(null)),
        ("moe_intermediate_size", json!(null)),
    ];
    edit(&folder, "config.json", &changes);
    assert_eq!(
        problems(open_weights(folder.path())),
        [
            "config.json lacks `num_experts`",
            "config.json lacks `moe_intermediate_size`"
        ]
    );
    let changes = [
        ("num_experts", json!(9)),
        ("num_experts_per_tok", json!(10)),
        ("moe_intermediate_size", json!(20)),
        ("decoder_sparse_step", json!(0)),
    ];
    edit(&folder, "config.json", &changes);
    assert_eq!(
        problems(open_weights(folder.path())),
        [
            "the count of experts chosen for a token is 10, expected 1 to 9",
            "the distance between layers with experts is 0, expected 1 to 4"
        ]
    );
    let changes = [
        ("num_experts_per_tok", json!(2)),
        ("decoder_sparse_step", json!(1)),
    ];
    edit(&folder, "config.json", &changes);
    let problems = problems(open_weights(folder.path()));
    // Three matrices of the ninth expert and the router, in each of four layers.
    assert_eq!(problems.len(), 4 * 4, "{problems:?}");
    assert_eq!(
        problems[0],
        "tensor `model.layers.0.mlp.gate.weight` is 8 × 36, expected 9 × 36"
    );
}

#[test]
fn the_newer_rope_parameters_are_read() {
    assert!(
        (open_weights(&golden("qwen3-random"))
            .unwrap()
            .config
            .rope_theta
            - 50_000.0)
            .abs()
            < 1e-3
    );
}

#[test]
fn computations_that_are_not_there_are_refused_all_at_once() {
    let folder = copy("abacus");
    let changes = [
        ("rope_scaling", json!({"rope_type": "yarn", "factor": 4.0})),
        ("attention_bias", json!(true)),
        ("use_sliding_window", json!(true)),
        ("sliding_window", json!(4096)),
        ("hidden_act", json!("gelu")),
        ("quantization_config", json!({"quant_method": "awq"})),
        ("num_hidden_layers", Value::Null),
    ];
    edit(&folder, "config.json", &changes);
    let expect = [
        "config.json has `rope_scaling` \"yarn\", which this build does not compute; expected `default` or nothing",
        "config.json has `hidden_act` \"gelu\", which this build does not compute; expected `silu`",
        "config.json has `attention_bias` true, which this build does not compute; expected false",
        "config.json has `sliding_window` 4096, which this build does not compute; expected null",
        "config.json has `quantization_config` \"awq\", which this build does not compute; expected unquantised \
         weights",
        "config.json lacks `num_hidden_layers`",
    ];
    assert_eq!(problems(open(folder.path())), expect);
}

#[test]
fn harmless_settings_are_let_through() {
    let folder = copy("abacus");
    // Qwen3 writes a window beside the switch that turns it off; `default` is no scaling.
    let changes = [
        ("sliding_window", json!(4096)),
        ("rope_scaling", json!({"type": "default"})),
    ];
    edit(&folder, "config.json", &changes);
    assert!(open(folder.path()).is_ok());
}

#[test]
fn another_architecture_is_refused_by_name() {
    let folder = copy("abacus");
    edit(
        &folder,
        "config.json",
        &[("architectures", json!(["MambaForCausalLM"]))],
    );
    let expect = "config.json has the architectures [\"MambaForCausalLM\"], of which this build computes none; known: \
                  LlamaForCausalLM, Qwen3ForCausalLM, Qwen3MoeForCausalLM";
    assert_eq!(problems(open(folder.path())), [expect]);
}

#[test]
fn shapes_are_checked_against_the_config() {
    let folder = copy("qwen3-random");
    edit(
        &folder,
        "config.json",
        &[("head_dim", json!(12)), ("num_key_value_heads", json!(3))],
    );
    let found = problems(open_weights(folder.path()));
    assert_eq!(found.len(), 3 * 6);
    assert_eq!(
        found[0],
        "tensor `model.layers.0.self_attn.q_proj.weight` is 60 × 36, expected 72 × 36"
    );
}

#[test]
fn a_tied_head_that_is_not_there_is_missed() {
    let folder = copy("abacus");
    edit(
        &folder,
        "config.json",
        &[("tie_word_embeddings", json!(false))],
    );
    assert_eq!(
        problems(open(folder.path())),
        ["tensor `lm_head.weight` is missing, expected 640 × 128"]
    );
}

#[test]
fn missing_files_are_named() {
    for (file, expect) in [
        (
            "config.json",
            "holds no config.json, which a Hugging Face folder must have",
        ),
        (
            "tokenizer.json",
            "holds no tokenizer.json, which a Hugging Face folder must have",
        ),
        (
            "model.safetensors",
            "holds neither model.safetensors nor model.safetensors.index.json; this build reads safetensors and \
             GGUF, no other weights",
        ),
        (
            "tokenizer_config.json",
            "has no chat template; put chat_template.jinja beside config.json or `chat_template` into \
             tokenizer_config.json",
        ),
    ] {
        let folder = copy("abacus");
        std::fs::remove_file(folder.path().join(file)).unwrap();
        assert_eq!(problems(open(folder.path())), [expect], "{file}");
    }
}

#[test]
fn a_template_file_wins_over_the_tokenizer_s() {
    let folder = copy("abacus");
    std::fs::write(
        folder.path().join("chat_template.jinja"),
        "only {{ eos_token }}",
    )
    .unwrap();
    let model = open(folder.path()).unwrap();
    let kwargs = serde_json::Map::new();
    let input = crate::template::RenderInput {
        messages: &[],
        tools: &[],
        add_generation_prompt: true,
        kwargs: &kwargs,
        now: 0,
    };
    assert_eq!(
        model.template.render(&input).unwrap().text(),
        "only <|im_end|>"
    );
}

#[test]
fn an_index_may_not_reach_outside_and_must_be_true() {
    let folder = copy("llama-random");
    let index = "model.safetensors.index.json";
    edit(
        &folder,
        index,
        &[(
            "weight_map",
            json!({"model.norm.weight": "../model.safetensors"}),
        )],
    );
    let expect = "names the file `../model.safetensors`, expected a name without folders";
    assert_eq!(problems(open_weights(folder.path())), [expect]);
    let shards: Vec<String> = (1..=3)
        .map(|n| format!("model-{n:05}-of-00003.safetensors"))
        .collect();
    let map = json!({"a": shards[0], "b": shards[1], "model.norm.weight": shards[2]});
    edit(&folder, index, &[("weight_map", map)]);
    let found = problems(open_weights(folder.path()));
    assert!(
        found
            .iter()
            .all(|problem| problem.starts_with(&format!("{index} says that tensor `"))),
        "{found:?}"
    );
}

#[test]
fn unread_types_and_wrong_sizes_are_named() {
    let header = json!({
        "a": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]},
        "b": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [2, 4]},
        "c": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [4, 10]},
        "d": {"dtype": "F32", "shape": [64], "data_offsets": [0, 256]},
        "e": {"dtype": "F32", "shape": [1, 1, 1], "data_offsets": [0, 4]},
    })
    .to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend([0; 12]);
    let folder = copy("abacus");
    std::fs::write(folder.path().join("model.safetensors"), &bytes).unwrap();
    let expect = [
        "tensor `c` takes bytes 4 to 10, which does not fit its shape [2, 2] in BF16".to_owned(),
        format!(
            "tensor `d` ends at byte {} of a file of {} bytes; the file is cut short, fetch it again",
            bytes.len() - 12 + 256,
            bytes.len()
        ),
        "tensor `e` has 3 dimensions, expected 1 or 2".to_owned(),
        "tensor `a` (with 1 more) is F8_E4M3, which this build does not read; readable: F32, F16, BF16".to_owned(),
    ];
    assert_eq!(problems(open(folder.path())), expect);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is done to a weights file, the folder opens or is refused in words.
    #[test]
    fn a_damaged_file_is_refused_in_words(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let folder = copy("qwen3-random");
        let path = folder.path().join("model.safetensors");
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, bit) in flips {
            bytes[at.index(4096)] ^= 1 << bit;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&path, &bytes).unwrap();
        if let Err(error) = open_weights(folder.path()) {
            prop_assert!(!error.problems().is_empty());
        } else {
            prop_assert!(cut.is_none());
        }
    }
}
