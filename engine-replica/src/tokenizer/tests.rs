//! Vocabularies small enough to see through, and the one invariant of all: bytes in, the same bytes out.

use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::added::{AddedToken, AddedTokens, Piece};
use super::{Tokenizer, Vocab};

fn abacus_json() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/abacus/tokenizer.json");
    std::fs::read_to_string(path).unwrap()
}

/// The token that the file gives a text, whatever its vocabulary is.
fn listed(text: &str) -> u32 {
    let json: Value = serde_json::from_str(&abacus_json()).unwrap();
    let added = json["added_tokens"].as_array().unwrap();
    let token = added.iter().find(|token| token["content"] == text).unwrap();
    u32::try_from(token["id"].as_u64().unwrap()).unwrap()
}

fn abacus() -> Tokenizer {
    Tokenizer::from_json(&abacus_json(), None).unwrap()
}

/// The same without its normaliser, which writes some characters otherwise.
fn exact() -> Tokenizer {
    let mut json: Value = serde_json::from_str(&abacus_json()).unwrap();
    json["normalizer"] = Value::Null;
    Tokenizer::from_json(&json.to_string(), None).unwrap()
}

/// All bytes and the token `<s>`, which is control.
fn byte_vocab(pre: &str) -> Vocab {
    let mut tokens: Vec<String> = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet()
        .iter()
        .map(|c| c.to_string())
        .collect();
    tokens.sort_unstable();
    tokens.push("<s>".to_owned());
    Vocab {
        tokens,
        control: vec![256],
        pre: pre.to_owned(),
        bos: Some(256),
        ..Vocab::default()
    }
}

fn decode(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<u8> {
    ids.iter()
        .flat_map(|&id| tokenizer.token_bytes(id))
        .copied()
        .collect()
}

fn token(text: &str, id: u32) -> AddedToken {
    AddedToken {
        text: text.to_owned(),
        id,
        special: true,
        lstrip: false,
        rstrip: false,
        single_word: false,
    }
}

#[track_caller]
fn check(tokens: Vec<AddedToken>, text: &str, breaks: &[usize], expect: &[Piece<'_>]) {
    assert_eq!(AddedTokens::new(tokens).split(text, breaks), expect);
}

#[test]
fn added_tokens_are_found_first_and_longest() {
    use Piece::{Text, Token};
    let tokens = || vec![token("<a>", 1), token("<a>b", 2), token("c", 3)];
    check(tokens(), "", &[], &[]);
    check(tokens(), "xyz", &[], &[Text("xyz")]);
    check(
        tokens(),
        "<a><a>b<a>xc",
        &[],
        &[Token(1), Token(2), Token(1), Text("x"), Token(3)],
    );
    check(tokens(), "<<a>é", &[], &[Text("<"), Token(1), Text("é")]);
    check(tokens(), "<a", &[], &[Text("<a")]);
    check(vec![token("", 9)], "a", &[], &[Text("a")]);
}

#[test]
fn no_token_begins_at_a_break() {
    use Piece::{Text, Token};
    let tokens = || vec![token("<a>", 1), token("c", 3)];
    check(tokens(), "<a><a>", &[0], &[Text("<a>"), Token(1)]);
    check(tokens(), "<a><a>", &[3], &[Token(1), Text("<a>")]);
    check(tokens(), "cc", &[1], &[Token(3), Text("c")]);
}

#[test]
fn added_tokens_take_white_space_and_want_room_as_they_say() {
    use Piece::{Text, Token};
    let left = AddedToken {
        lstrip: true,
        ..token("<l>", 1)
    };
    let right = AddedToken {
        rstrip: true,
        ..token("<r>", 2)
    };
    let word = AddedToken {
        single_word: true,
        ..token("yes", 3)
    };
    let tokens = || vec![left.clone(), right.clone(), word.clone()];
    check(
        tokens(),
        "a \n<l> b",
        &[],
        &[Text("a"), Token(1), Text(" b")],
    );
    check(
        tokens(),
        "a <r>\t\u{3000}b",
        &[],
        &[Text("a "), Token(2), Text("b")],
    );
    check(tokens(), "<r> <l>", &[], &[Token(2), Token(1)]);
    check(
        tokens(),
        "yes yesno éyes yes!",
        &[],
        &[Token(3), Text(" yesno éyes "), Token(3), Text("!")],
    );
}

#[test]
fn control_tokens_count_in_templates_text_only() {
    let tokenizer = abacus();
    let start = listed("<|im_start|>");
    assert_eq!(tokenizer.encode("<|im_start|>").unwrap(), [start]);
    let plain = tokenizer.encode_plain("<|im_start|>").unwrap();
    assert!(!plain.contains(&start));
    assert_eq!(decode(&tokenizer, &plain), b"<|im_start|>");
}

#[test]
fn ids_have_their_bytes_and_kinds() {
    let tokenizer = abacus();
    let (open, close, end) = (listed("<think>"), listed("</think>"), listed("<|im_end|>"));
    assert_eq!(tokenizer.token_id("<think>"), Some(open));
    assert_eq!(
        (tokenizer.is_special(open), tokenizer.is_special(end)),
        (false, true)
    );
    assert_eq!(tokenizer.token_bytes(close), b"</think>");
    assert_eq!(tokenizer.token_bytes(tokenizer.len() as u32), b"");
    assert_eq!(tokenizer.token_bytes(u32::MAX), b"");
    assert_eq!(
        tokenizer.control_texts(),
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    );
}

#[test]
fn the_first_token_is_put_in_front_once() {
    let with = |add_bos: Option<bool>, pre: &str| {
        Tokenizer::from_vocab(&Vocab {
            add_bos,
            ..byte_vocab(pre)
        })
        .unwrap()
    };
    let a = byte_vocab("gpt-2")
        .tokens
        .iter()
        .position(|text| text == "a")
        .unwrap() as u32;
    assert_eq!(with(Some(true), "gpt-2").encode("a").unwrap(), [256, a]);
    assert_eq!(with(Some(true), "gpt-2").encode("<s>a").unwrap(), [256, a]);
    assert_eq!(
        with(Some(true), "gpt-2").encode("<s><s>a").unwrap(),
        [256, 256, a]
    );
    assert_eq!(with(Some(true), "gpt-2").encode_plain("a").unwrap(), [a]);
    assert_eq!(with(None, "gpt-2").encode("a").unwrap(), [a]);
    assert_eq!(with(None, "llama-bpe").encode("a").unwrap(), [256, a]);
}

#[test]
fn a_post_processor_that_writes_the_first_token_is_obeyed() {
    let mut json: Value = serde_json::from_str(&abacus_json()).unwrap();
    let template = json!({"type": "TemplateProcessing", "pair": [], "special_tokens": {},
        "single": [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]});
    json["post_processor"] = json!({"type": "Sequence", "processors": [template]});
    let tokenizer = Tokenizer::from_json(&json.to_string(), Some("<|im_start|>")).unwrap();
    assert_eq!(tokenizer.encode("").unwrap(), [listed("<|im_start|>")]);
    let other = Tokenizer::from_json(&json.to_string(), None).unwrap();
    assert!(other.encode("").unwrap().is_empty());
}

#[track_caller]
fn refused(vocab: &Vocab, expect: &str) {
    assert_eq!(Tokenizer::from_vocab(vocab).err().unwrap(), [expect]);
}

#[test]
fn vocabularies_that_cannot_work_are_refused() {
    let vocab = || byte_vocab("gpt-2");
    refused(
        &Vocab {
            merges: vec!["ab".to_owned()],
            ..vocab()
        },
        "merge `ab` is not two tokens with a space between",
    );
    refused(
        &Vocab {
            control: vec![256, 300],
            ..vocab()
        },
        "token 300 has a type but no text",
    );
    let mut twice = vocab();
    twice.tokens.push("a".to_owned());
    refused(
        &twice,
        &format!(
            "tokens {} and 257 have the same text `a`",
            twice.tokens.iter().position(|t| t == "a").unwrap()
        ),
    );
    let mut short = vocab();
    short.tokens[0] = "ab".to_owned();
    let error = Tokenizer::from_vocab(&short).err().unwrap();
    assert!(
        error[0].starts_with("the vocabulary has no token for 1 of the bytes"),
        "{error:?}"
    );
}

#[test]
fn files_that_are_not_byte_level_are_refused() {
    let error = |json: &Value| Tokenizer::from_json(&json.to_string(), None).err().unwrap();
    let mut json: Value = serde_json::from_str(&abacus_json()).unwrap();
    assert_eq!(error(&json!([])), ["is not a JSON object"]);
    json["pre_tokenizer"] = json!({"type": "Whitespace"});
    assert_eq!(
        error(&json),
        ["has a BPE model without a byte-level pre-tokenizer; this build reads byte-level BPE"]
    );
    json["model"] = json!({"type": "Unigram"});
    assert_eq!(
        error(&json),
        ["has a Unigram model; this build reads byte-level BPE"]
    );
}

const PARTS: &[&str] = &[
    "<|im_start|>",
    "<|im_end|>",
    "<|im_",
    "start|>",
    "<think>",
    " ",
    "\n",
    "7",
    "'s",
    "é",
    "日",
    "🙂",
    "a",
    "<s>",
    "\u{0}",
];

/// Text with control tokens, halves of them, and characters of one to four bytes.
fn tricky() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PARTS), 0..24).prop_map(|parts| parts.concat())
}

// Made once: compiling the patterns takes far longer than a case.
static ABACUS: LazyLock<Tokenizer> = LazyLock::new(abacus);
static EXACT: LazyLock<Tokenizer> = LazyLock::new(exact);
static LIBRARY: LazyLock<tokenizers::Tokenizer> = LazyLock::new(|| abacus_json().parse().unwrap());
static PRE_TOKENIZERS: LazyLock<[Tokenizer; 4]> = LazyLock::new(|| {
    ["gpt-2", "smollm", "llama-bpe", "default"].map(|pre| {
        Tokenizer::from_vocab(&Vocab {
            bos: None,
            ..byte_vocab(pre)
        })
        .unwrap()
    })
});

proptest! {
    #[test]
    fn bytes_come_back_whatever_the_text(text in prop_oneof![tricky(), any::<String>()]) {
        prop_assert_eq!(decode(&EXACT, &EXACT.encode(&text).unwrap()), text.as_bytes());
        let plain = EXACT.encode_plain(&text).unwrap();
        prop_assert_eq!(decode(&EXACT, &plain), text.as_bytes());
        prop_assert!(plain.iter().all(|&id| !EXACT.is_special(id)));
    }

    /// Finding added tokens ourselves gives what the library gives with its own search.
    #[test]
    fn the_library_agrees(text in prop_oneof![tricky(), any::<String>()]) {
        let expect = LIBRARY.encode_fast(text.as_str(), false).unwrap();
        prop_assert_eq!(ABACUS.encode(&text).unwrap(), expect.get_ids());
    }

    #[test]
    fn every_pre_tokenizer_keeps_all_bytes(text in prop_oneof![tricky(), "\\PC{0,40}"]) {
        for tokenizer in PRE_TOKENIZERS.iter() {
            prop_assert_eq!(decode(tokenizer, &tokenizer.encode(&text).unwrap()), text.as_bytes());
        }
    }
}
