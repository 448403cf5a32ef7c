//! Token ids against transformers (Abacus) and llama.cpp (SmolLM2).

use engine_replica::loader;
use engine_replica::tokenizer::Tokenizer;
use serde::Deserialize;

use crate::fixtures;

#[derive(Deserialize)]
struct Row {
    text: String,
    /// With nothing taken for a control token.
    plain: Option<Vec<u32>>,
    /// With all of them taken.
    special: Vec<u32>,
}

#[track_caller]
fn check(tokenizer: &Tokenizer, rows: &[Row]) {
    assert!(rows.len() > 70);
    for Row {
        text,
        plain,
        special,
    } in rows
    {
        assert_eq!(&tokenizer.encode(text).unwrap(), special, "{text:?}");
        if let Some(plain) = plain {
            assert_eq!(&tokenizer.encode_plain(text).unwrap(), plain, "{text:?}");
        }
        let bytes: Vec<u8> = special
            .iter()
            .flat_map(|&id| tokenizer.token_bytes(id))
            .copied()
            .collect();
        assert_eq!(String::from_utf8(bytes).unwrap(), *text);
    }
}

#[test]
fn abacus_has_transformers_tokens() {
    let model = loader::open(&fixtures::path("abacus-prototype")).unwrap();
    check(
        &model.tokenizer,
        &fixtures::part::<Vec<Row>>(&fixtures::read("abacus.json"), "tokens"),
    );
}

#[test]
fn smollm2_has_llama_cpp_s_tokens() {
    let Some(path) = fixtures::smollm2() else {
        return;
    };
    let model = loader::open(&path).unwrap();
    check(
        &model.tokenizer,
        &fixtures::part::<Vec<Row>>(&fixtures::read("smollm2.json"), "tokens"),
    );
    assert_eq!(model.eos, [0, 2]);
}
