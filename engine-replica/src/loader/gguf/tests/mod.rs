//! GGUF files that are right, wrong, split and damaged.

mod damage;
mod split;

use super::super::{Checkpoint, LoadError, open};
use super::writer::{Put, Writer};
use crate::loader::tensor::{DType, TensorSource};
use crate::model::config::{Family, MixtureConfig, ModelConfig, RopeStyle};

fn open_bytes(bytes: &[u8]) -> Result<Checkpoint, LoadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.Q8_0.gguf");
    std::fs::write(&path, bytes).unwrap();
    open(&path)
}

#[track_caller]
fn refused(file: &Writer, problems: &[&str]) {
    let error = open_bytes(&file.bytes()).expect_err("the file should be refused");
    assert_eq!(error.problems(), problems);
}

#[test]
fn a_llama_file_opens_with_its_shape_tensors_vocabulary_and_ends() {
    let file = Writer::tiny("llama");
    let model = open_bytes(&file.bytes()).unwrap();
    assert_eq!(model.name, "tiny.Q8_0");
    let expect = ModelConfig {
        family: Family::Llama,
        vocab: 260,
        hidden: 64,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 16,
        intermediate: 96,
        context_max: 128,
        rope_theta: 50_000.0,
        rope_style: RopeStyle::Interleaved,
        rms_eps: 1e-5,
        tied_output: true,
        mixture: None,
    };
    assert_eq!(model.weights.config, expect);
    assert_eq!(model.eos, [257]);
    assert_eq!(model.tokenizer.encode(" t<|im_end|>").unwrap(), [259, 257]);
    let down = model
        .weights
        .tensors
        .tensor("model.layers.1.mlp.down_proj.weight")
        .unwrap();
    assert_eq!((down.dtype, down.rows, down.cols), (DType::Q8_0, 64, 96));
    let stored = file
        .tensors
        .iter()
        .find(|(name, ..)| name == "blk.1.ffn_down.weight")
        .unwrap();
    assert_eq!(down.data, stored.3);
}

#[test]
fn a_qwen3_file_turns_half_heads_and_needs_head_norms() {
    let file = Writer::tiny("qwen3");
    let model = open_bytes(&file.bytes()).unwrap();
    assert_eq!(model.weights.config.family, Family::Qwen3);
    assert_eq!(model.weights.config.rope_style, RopeStyle::Half);
    let mut file = file;
    file.tensors.retain(|(name, ..)| !name.contains("q_norm"));
    refused(
        &file,
        &[
            "tensor `model.layers.0.self_attn.q_norm.weight` is missing, expected 1 × 16",
            "tensor `model.layers.1.self_attn.q_norm.weight` is missing, expected 1 × 16",
        ],
    );
}

#[test]
fn stacked_experts_become_a_tensor_each() {
    let file = Writer::tiny("qwen3moe");
    let model = open_bytes(&file.bytes()).unwrap();
    let mixture = MixtureConfig {
        experts: 3,
        chosen: 2,
        intermediate: 32,
        renormalise: true,
        every: 1,
        dense_layers: Vec::new(),
    };
    assert_eq!(model.weights.config.family, Family::Qwen3);
    assert_eq!(model.weights.config.mixture, Some(mixture));
    for (name, stored, shape) in [
        ("gate_proj", "ffn_gate_exps", (32, 64)),
        ("down_proj", "ffn_down_exps", (64, 32)),
    ] {
        let stored = format!("blk.1.{stored}.weight");
        let (.., data) = file
            .tensors
            .iter()
            .find(|(name, ..)| *name == stored)
            .unwrap();
        for (expert, data) in data.chunks_exact(data.len() / 3).enumerate() {
            let name = format!("model.layers.1.mlp.experts.{expert}.{name}.weight");
            let found = model.weights.tensors.tensor(&name).unwrap();
            assert_eq!((found.rows, found.cols), shape);
            assert_eq!(found.data, data);
        }
    }
    let plain = file
        .clone()
        .with("qwen3moe.expert_weights_norm", Put::Bool(false));
    let plain = open_bytes(&plain.bytes()).unwrap().weights.config.mixture;
    assert!(!plain.unwrap().renormalise);
}

#[test]
fn experts_that_are_missing_or_chosen_in_another_way_are_refused() {
    let mut file = Writer::tiny("qwen3moe");
    for (name, dims, ..) in &mut file.tensors {
        if name == "blk.0.ffn_up_exps.weight" {
            dims[2] = 2;
        }
    }
    refused(
        &file,
        &["tensor `model.layers.0.mlp.experts.2.up_proj.weight` is missing, expected 32 × 64"],
    );
    let file = Writer::tiny("qwen3moe")
        .without("qwen3moe.expert_used_count")
        .with("qwen3moe.expert_gating_func", Put::U32(2))
        .with("qwen3moe.expert_shared_count", Put::U32(1));
    refused(
        &file,
        &[
            "`qwen3moe.expert_shared_count` is 1, which this build does not compute; expected 0 or nothing",
            "metadata key `qwen3moe.expert_used_count` is missing",
            "`qwen3moe.expert_gating_func` is 2, which this build does not compute; expected 1 (softmax)",
        ],
    );
    let file = Writer::tiny("qwen3moe").with("qwen3moe.expert_used_count", Put::U32(4));
    refused(
        &file,
        &["the count of experts chosen for a token is 4, expected 1 to 3"],
    );
    let file = Writer::tiny("qwen3").with("qwen3.expert_count", Put::U32(3));
    refused(
        &file,
        &["`qwen3.expert_count` is 3, which this build does not compute; expected 0 or nothing"],
    );
}

#[test]
fn version_2_and_another_alignment_open() {
    let mut file = Writer::tiny("llama");
    file.version = 2;
    file.alignment = 256;
    let file = file.with("general.alignment", Put::U32(256));
    assert!(open_bytes(&file.bytes()).is_ok());
}

#[test]
fn an_own_output_projection_is_untied() {
    let mut file = Writer::tiny("llama");
    let (_, dims, kind, data) = file.tensors[0].clone();
    file.tensors
        .push(("output.weight".to_owned(), dims, kind, data));
    assert!(
        !open_bytes(&file.bytes())
            .unwrap()
            .weights
            .config
            .tied_output
    );
}

#[test]
fn sampling_keys_become_defaults() {
    let file = Writer::tiny("llama")
        .with("general.sampling.temp", Put::F32(0.5))
        .with("general.sampling.top_k", Put::U32(20));
    let generation = open_bytes(&file.bytes()).unwrap().generation;
    assert_eq!(
        (generation.temperature, generation.top_k, generation.top_p),
        (Some(0.5), Some(20), None)
    );
}

#[test]
fn other_formats_are_refused_by_name() {
    let with_version = |version: u32| Writer {
        version,
        ..Writer::tiny("llama")
    };
    refused(
        &with_version(1),
        &[
            "is GGUF version 1, which this build does not read; convert the model again with a current llama.cpp, which \
           writes version 3",
        ],
    );
    refused(
        &with_version(3_u32.swap_bytes()),
        &["is a big-endian GGUF file, which this build does not read; use the little-endian one"],
    );
    refused(&with_version(4), &["is GGUF version 4, expected 2 or 3"]);
    let error = open_bytes(b"not a model").err().unwrap();
    assert_eq!(
        error.problems(),
        ["is not a GGUF file: it does not begin with `GGUF`"]
    );
}

#[test]
fn unread_types_are_named_once_each() {
    let mut file = Writer::tiny("llama");
    for (name, _, kind, _) in &mut file.tensors {
        match name.as_str() {
            "blk.0.attn_q.weight" | "blk.0.attn_k.weight" => *kind = 12,
            "blk.1.ffn_up.weight" => *kind = 14,
            _ => {}
        }
    }
    refused(
        &file,
        &[
            "tensor `blk.0.attn_q.weight` (with 1 more) is Q4_K, which this build does not read; readable: F32, F16, \
             BF16, Q8_0, Q4_0, Q4_1",
            "tensor `blk.1.ffn_up.weight` is Q6_K, which this build does not read; readable: F32, F16, BF16, Q8_0, \
             Q4_0, Q4_1",
        ],
    );
}

#[test]
fn computations_that_are_not_there_are_refused_all_at_once() {
    let file = Writer::tiny("llama")
        .with("llama.rope.scaling.type", Put::Text("yarn".to_owned()))
        .with("llama.expert_count", Put::U32(8))
        .with("llama.attention.value_length", Put::U16(8))
        .with("llama.logit_scale", Put::F32(0.5))
        .without("llama.context_length");
    refused(
        &file,
        &[
            "rotary scaling `yarn` is not computed by this build; known: none",
            "`llama.expert_count` is 8, which this build does not compute; expected 0 or nothing",
            "`llama.logit_scale` is not computed by this build",
            "metadata key `llama.context_length` is missing",
            "`llama.attention.value_length` is 8 where a head has 16 elements; this build computes only equal sizes",
        ],
    );
    refused(
        &Writer::tiny("llama").with("general.architecture", Put::Text("mamba".to_owned())),
        &[
            "the architecture is `mamba`, which this build does not compute; known: llama, qwen3, qwen3moe",
        ],
    );
}

#[test]
fn tensors_that_would_be_left_out_are_refused() {
    let mut file = Writer::tiny("llama");
    file.tensors
        .push(("rope_freqs.weight".to_owned(), vec![8], 0, vec![0; 32]));
    refused(
        &file,
        &[
            "tensor `rope_freqs.weight` has no part in a Llama model as this build computes it; the answers would be \
           wrong without it",
        ],
    );
}

#[test]
fn shapes_are_checked_against_the_metadata() {
    let file = Writer::tiny("llama").with("llama.feed_forward_length", Put::U32(97));
    let error = open_bytes(&file.bytes()).err().unwrap();
    assert_eq!(error.problems().len(), 6);
    assert_eq!(
        error.problems()[0],
        "tensor `model.layers.0.mlp.gate_proj.weight` is 96 × 64, expected 97 × 64"
    );
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let heads =
        |heads: u32| Writer::tiny("llama").with("llama.attention.head_count_kv", Put::U32(heads));
    refused(
        &heads(3),
        &["4 attention heads cannot share 3 key and value heads evenly"],
    );
    refused(
        &heads(0),
        &["the key and value head count is 0, expected 1 to 16777216"],
    );
    refused(
        &Writer::tiny("llama").with("llama.block_count", Put::U32(4_000_000_000)),
        &["the layer count is 4000000000, expected 1 to 1024"],
    );
    refused(
        &Writer::tiny("llama").with("general.alignment", Put::U32(24)),
        &["`general.alignment` is 24, expected a power of two up to 65536"],
    );
    refused(
        &Writer::tiny("llama").with("llama.block_count", Put::Bool(true)),
        &["`llama.block_count` is a boolean, expected an integer from 0"],
    );
}

#[test]
fn vocabularies_of_other_kinds_are_refused_by_name() {
    let tiny = || Writer::tiny("llama");
    refused(
        &tiny().with("tokenizer.ggml.pre", Put::Text("tekken".to_owned())),
        &[
            "`tokenizer.ggml.pre` is `tekken`, a way of cutting text that this build does not know; known: default, \
           gpt-2, llama-bpe, qwen2, smollm",
        ],
    );
    refused(
        &tiny().with("tokenizer.ggml.model", Put::Text("llama".to_owned())),
        &[
            "`tokenizer.ggml.model` is `llama`, expected `gpt2` (byte-level BPE); this build reads no other vocabulary",
        ],
    );
    refused(
        &tiny().without("tokenizer.ggml.pre"),
        &["`tokenizer.ggml.pre` is missing; convert the model again with a current llama.cpp"],
    );
    refused(
        &tiny().without("tokenizer.chat_template"),
        &["has no `tokenizer.chat_template`; use an instruction-tuned model's file"],
    );
    refused(
        &tiny().with("tokenizer.ggml.eos_token_id", Put::U32(300)),
        &["names the end token 300 of a vocabulary of 260"],
    );
}

#[test]
fn a_template_that_does_not_compile_is_named_with_its_line() {
    let file = Writer::tiny("llama").with(
        "tokenizer.chat_template",
        Put::Text("\n{% if %}".to_owned()),
    );
    let error = open_bytes(&file.bytes()).err().unwrap();
    assert!(
        error.problems()[0].starts_with("the model's chat template is broken: "),
        "{error}"
    );
    assert!(
        error.problems()[0].ends_with("(line 2 of the template)"),
        "{error}"
    );
}

#[test]
fn a_long_list_of_problems_is_cut_with_a_count() {
    let mut file = Writer::tiny("llama").with("llama.block_count", Put::U32(5));
    file.tensors.truncate(1);
    let error = open_bytes(&file.bytes()).err().unwrap();
    assert_eq!(error.problems().len(), 46);
    let shown = error.to_string();
    assert!(
        shown.contains(": 46 problems\n  tensor `model.norm.weight` is missing"),
        "{shown}"
    );
    assert!(shown.ends_with("\n  and 26 more"), "{shown}");
}

#[test]
fn the_fingerprint_tells_models_apart_and_files_of_one_model_together() {
    let print = |file: &Writer| open_bytes(&file.bytes()).unwrap().weights.fingerprint;
    let file = Writer::tiny("llama");
    assert_eq!(print(&file), print(&file));
    assert_ne!(
        print(&file),
        print(&file.clone().with("general.name", Put::Text("x".to_owned())))
    );
}
