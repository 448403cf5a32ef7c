use proptest::prelude::*;

use super::*;

const OPEN: u32 = 256;
const CLOSE: u32 = 257;
/// A special token, as `<|im_start|>`.
const TURN: u32 = 258;
const MARKS: ThinkTokens = ThinkTokens {
    open: OPEN,
    close: CLOSE,
};

/// Each byte is a token of its own, and after the marks come pieces of several bytes.
struct Bytes(Vec<Vec<u8>>);

impl Bytes {
    fn new(pieces: &[Vec<u8>]) -> Self {
        let singles = (0..=u8::MAX).map(|byte| vec![byte]);
        let marks = ["<think>", "</think>", "<|im_start|>"].map(|text| text.as_bytes().to_vec());
        Bytes(singles.chain(marks).chain(pieces.to_vec()).collect())
    }
}

impl TokenText for Bytes {
    fn bytes(&self, token: u32) -> &[u8] {
        self.0.get(token as usize).map_or(&[], Vec::as_slice)
    }

    fn is_special(&self, token: u32) -> bool {
        token == TURN
    }
}

/// `‹` opens, `›` closes, all else is one token a byte.
fn tokens(text: &str) -> Vec<u32> {
    let mut tokens = Vec::new();
    for c in text.chars() {
        match c {
            '‹' => tokens.push(OPEN),
            '›' => tokens.push(CLOSE),
            '|' => tokens.push(TURN),
            other => tokens.extend(other.to_string().bytes().map(u32::from)),
        }
    }
    tokens
}

fn run(opened: bool, stops: &[&str], tokens: &[u32], vocabulary: &Bytes) -> (String, String, u32) {
    let thinking = Thinking {
        tokens: MARKS,
        opened,
        prompt_tokens: 0,
    };
    let stops = stops.iter().map(ToString::to_string).collect();
    let mut text = AnswerText::new(Some(thinking), stops);
    let (mut reasoning, mut content) = (String::new(), String::new());
    let mut told = false;
    let mut take = |delta: AnswerDelta| match delta.part {
        AnswerPart::Reasoning => {
            assert!(!told, "reasoning after content");
            reasoning += &delta.text;
        }
        AnswerPart::Content => {
            told = true;
            content += &delta.text;
        }
    };
    for &token in tokens {
        take(text.push(token, vocabulary));
    }
    take(text.finish());
    assert_eq!(text.finish().text, "", "the end comes once");
    (reasoning, content, text.reasoning_tokens())
}

#[track_caller]
fn check(opened: bool, stops: &[&str], answer: &str, expect: (&str, &str, u32)) {
    let got = run(opened, stops, &tokens(answer), &Bytes::new(&[]));
    let got = (got.0.as_str(), got.1.as_str(), got.2);
    assert_eq!(got, expect, "{answer}");
}

#[test]
fn the_marks_part_reasoning_from_content() {
    check(false, &[], "‹\nso\n›\n\nyes", ("so", "yes", 4));
    check(true, &[], "\nso\n›\n\nyes", ("so", "yes", 4));
    check(false, &[], "yes", ("", "yes", 0));
    check(false, &[], "‹›yes", ("", "yes", 0));
    check(false, &[], "‹\n\n›\n\nyes", ("", "yes", 2));
}

#[test]
fn only_the_newlines_of_the_format_are_dropped() {
    check(
        false,
        &[],
        "‹\n\n a\n\nb \n\n›\n\n\n  c\n",
        ("\n a\n\nb ", "  c\n", 10),
    );
    check(false, &[], "\n\nyes\n", ("", "\n\nyes\n", 0));
}

// RC-130: a block that opens again before anything was said is more of the reasoning.
#[test]
fn rc_130_blocks_with_nothing_between_them_are_one_reasoning() {
    check(false, &[], "‹a›‹b›Ok.", ("a\nb", "Ok.", 2));
    check(false, &[], "‹\na\n›\n\n‹\nb\n›\n\nOk.", ("a\nb", "Ok.", 6));
    check(true, &[], "›‹b›Ok.", ("b", "Ok.", 1));
}

#[test]
fn what_the_replica_writes_to_end_the_reasoning_is_its_text_and_no_token_of_it() {
    let vocabulary = Bytes::new(&[]);
    let thinking = MARKS.after(&[OPEN], &vocabulary);
    let mut text = AnswerText::new(Some(thinking), vec![]);
    let mut told = text.push(u32::from(b'a'), &vocabulary).text;
    for token in tokens("\nTime.\n›\n\n") {
        told += &text.push_closing(token, &vocabulary).text;
    }
    assert_eq!(told, "a\nTime.");
    assert_eq!(text.reasoning_tokens(), 1);
    assert_eq!(text.push(u32::from(b'b'), &vocabulary).text, "b");
}

#[test]
fn an_answer_cut_inside_its_reasoning_has_no_content() {
    check(false, &[], "‹\nso\n\n", ("so\n\n", "", 5));
    check(true, &[], "so", ("so", "", 2));
}

#[test]
fn a_mark_where_none_can_stand_is_text() {
    check(false, &[], "a‹b›c", ("", "a<think>b</think>c", 0));
    check(false, &[], "›a", ("", "</think>a", 0));
    check(
        false,
        &[],
        "‹a‹b›c‹d›",
        ("a<think>b", "c<think>d</think>", 3),
    );
    check(false, &[], "‹</think>›x", ("</think>", "x", 8));
}

#[test]
fn stop_strings_and_special_tokens_are_the_contents_alone() {
    check(false, &["b"], "‹ab›xby", ("ab", "x", 2));
    check(false, &["\n"], "‹a›\n\nx\ny", ("a", "x", 1));
    check(false, &[], "‹a|b›x|y", ("ab", "xy", 3));
}

#[test]
fn a_character_cut_by_a_mark_does_not_reach_over_it() {
    let tokens = [OPEN, 0xc3, CLOSE, 0xa9, u32::from(b'x')];
    let got = run(false, &[], &tokens, &Bytes::new(&[]));
    assert_eq!(got, ("\u{fffd}".into(), "\u{fffd}x".into(), 1));
}

#[test]
fn a_model_without_marks_only_tells() {
    let mut text = AnswerText::new(None, vec![]);
    let vocabulary = Bytes::new(&[]);
    assert_eq!(text.push(OPEN, &vocabulary).text, "<think>");
    assert_eq!(text.push(CLOSE, &vocabulary).text, "</think>");
    assert_eq!(text.reasoning_tokens(), 0);
}

#[test]
fn the_prompts_own_tail_says_whether_the_block_is_open() {
    #[track_caller]
    fn opened(prompt: &str, expect: bool) {
        let thinking = MARKS.after(&tokens(prompt), &Bytes::new(&[]));
        assert_eq!(thinking.opened, expect, "{prompt}");
        // All of these that end in an open block have one newline in it.
        assert_eq!(thinking.prompt_tokens, u32::from(expect), "{prompt}");
    }
    opened("|user\nhi|\n|assistant\n", false);
    opened("|user\nhi|\n|assistant\n‹\n", true);
    opened("|user\nhi|\n|assistant\n‹\n\n›\n\n", false);
    // A client's own mark, and one of a turn before.
    opened("|user\n‹ what is it?|\n|assistant\n", false);
    opened("|assistant\n‹\na|\n|user\n›|\n|assistant\n‹\n", true);
    opened("", false);
}

#[test]
fn marks_that_are_special_tokens_are_found_all_the_same() {
    struct Special;
    impl TokenText for Special {
        fn bytes(&self, _: u32) -> &[u8] {
            &[]
        }
        fn is_special(&self, token: u32) -> bool {
            token >= OPEN
        }
    }
    for (prompt, expect) in [("|a\n‹\n", true), ("|a‹b›\n", false), ("‹|a\n", false)] {
        assert_eq!(
            MARKS.after(&tokens(prompt), &Special).opened,
            expect,
            "{prompt}"
        );
    }
}

/// An answer as bytes and marks, and each stretch of bytes once more as pieces cut anywhere.
fn stretches() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    let byte = prop::sample::select(b"\n\n a<\xc3\xa9".to_vec());
    let piece = prop::collection::vec(byte, 0..4);
    let stretch = prop::collection::vec(piece, 0..5);
    prop::collection::vec(stretch, 1..5)
}

proptest! {
    #[test]
    fn cuts_between_marks_mean_nothing_and_nothing_is_lost(
        stretches in stretches(),
        opened in any::<bool>(),
        marks in prop::collection::vec(any::<bool>(), 5),
    ) {
        let (mut pieces, mut cut, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for (stretch, open) in stretches.iter().zip(marks) {
            for piece in stretch {
                cut.push(TURN + 1 + pieces.len() as u32);
                pieces.push(piece.clone());
                whole.extend(piece.iter().map(|&byte| u32::from(byte)));
            }
            let mark = if open { OPEN } else { CLOSE };
            cut.push(mark);
            whole.push(mark);
        }
        // A piece without bytes is a token all the same: it is no opening mark, so it must not stand first.
        prop_assume!(opened || !pieces.first().is_some_and(Vec::is_empty) || cut[0] < TURN);
        let vocabulary = Bytes::new(&pieces);
        let (reasoning, content, _) = run(opened, &[], &cut, &vocabulary);
        let by_bytes = run(opened, &[], &whole, &vocabulary);
        prop_assert_eq!((&reasoning, &content), (&by_bytes.0, &by_bytes.1));

        // All that is no newline comes out, in its order, but for the two marks that were used.
        let solid = |text: &str| text.replace(['\n', '\u{fffd}'], "");
        let plain: Vec<u8> = whole.iter().flat_map(|&token| vocabulary.bytes(token).to_vec()).collect();
        let plain = solid(&String::from_utf8_lossy(&plain)).replace("<think>", "").replace("</think>", "");
        let told = solid(&reasoning) + &solid(&content);
        let told = told.replace("<think>", "").replace("</think>", "");
        prop_assert_eq!(told.replace('é', ""), plain.replace('é', ""));
    }
}
