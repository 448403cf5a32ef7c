//! How a turn looks, whatever language it is in: its length, numbers, signs of mathematics and of code, and how it is set.

use super::concepts::Met;
use super::counts::Counts;
use super::text::{Kind, Normal, Word};

/// Names of [`features`], in the same order.
pub(super) const NAMES: [&str; 61] = [
    "length_16",
    "length_32",
    "length_64",
    "length_128",
    "length_256",
    "length_512",
    "length_1024",
    "length_2048",
    "words_1",
    "words_3",
    "words_6",
    "numbers_1",
    "numbers_2",
    "numbers_3",
    "numbers_5",
    "numbers_9",
    "digit_share",
    "number_share",
    "decimals",
    "capital_share",
    "lone_letters",
    "lone_letter_share",
    "latex",
    "dollar_pairs",
    "money",
    "percents",
    "backslashes",
    "carets",
    "equals",
    "equals_many",
    "operators",
    "operators_many",
    "math_signs",
    "math_share",
    "braces",
    "brackets",
    "calls",
    "semicolon_ends",
    "underscores",
    "camels",
    "backticks",
    "code_fence",
    "arrows",
    "question_any",
    "question_last",
    "question_many",
    "exclamations",
    "quotes",
    "colon_last",
    "colons",
    "commas",
    "newlines",
    "blank_lines",
    "list_lines",
    "indented_lines",
    "options",
    "placeholders",
    "word_length",
    "dense_script",
    "numbers_and_question",
    "numbers_and_quantity",
];

/// 0 to 1: how much there is of something, by its logarithm; 1 from 31 on.
fn some(count: u32) -> f32 {
    // Whole bits of (count + 1), with the rest in a straight line: the same on every host.
    let n = (count + 1).min(32);
    let bits = n.ilog2();
    let rest = n - (1 << bits);
    (bits as f32 + rest as f32 / (1u32 << bits) as f32) / 5.0
}

/// 0 below `from`, 1 from twice that on.
fn ramp(value: u32, from: u32) -> f32 {
    value.saturating_sub(from).min(from) as f32 / from as f32
}

fn is(condition: bool) -> f32 {
    if condition { 1.0 } else { 0.0 }
}

fn share(part: u32, whole: u32) -> f32 {
    part.min(whole) as f32 / whole.max(1) as f32
}

fn of_kind(normal: &Normal, kind: Kind) -> impl Iterator<Item = &Word> {
    normal.words.iter().filter(move |word| word.kind == kind)
}

/// Characters of scripts without spaces.
fn dense_chars(normal: &Normal) -> u32 {
    let bytes: usize = of_kind(normal, Kind::Dense)
        .map(|word| word.span.len())
        .sum();
    // Nearly all have three bytes.
    u32::try_from(bytes / 3).unwrap_or(u32::MAX)
}

/// How many words and numbers a text has; a word of a script without spaces has about two characters.
pub(super) fn words(normal: &Normal) -> u32 {
    let spaced = of_kind(normal, Kind::Letters).count() + of_kind(normal, Kind::Digits).count();
    u32::try_from(spaced)
        .unwrap_or(u32::MAX)
        .saturating_add(dense_chars(normal).div_ceil(2))
}

/// The features of a turn. `bytes` is its whole length; `head` and `tail` are what is read of it; `quantity` is how often it asks for a number.
#[expect(
    clippy::too_many_lines,
    reason = "a list of values beside the list of their names"
)]
pub(super) fn features(
    bytes: usize,
    (head, tail): (&str, &str),
    normal: &Normal,
    quantity: Met,
) -> [f32; NAMES.len()] {
    let mut n = Counts::default();
    n.add(head);
    n.add(tail);
    let length = u32::try_from(bytes).unwrap_or(u32::MAX);
    let (words, dense) = (words(normal), dense_chars(normal));
    let end = if tail.is_empty() { head } else { tail };
    let end = end.trim_end().chars().next_back().unwrap_or(' ');
    let asks = n.questions > 0 || quantity.all > 0;
    let latex = n.backslashes + n.dollars / 2;
    let maths = n.math_signs + n.operators + n.carets + n.equals + n.backslashes;
    [
        ramp(length, 16),
        ramp(length, 32),
        ramp(length, 64),
        ramp(length, 128),
        ramp(length, 256),
        ramp(length, 512),
        ramp(length, 1_024),
        ramp(length, 2_048),
        is(words <= 1),
        is(words <= 3),
        is(words <= 6),
        is(n.numbers >= 1),
        is(n.numbers >= 2),
        is(n.numbers >= 3),
        is(n.numbers >= 5),
        is(n.numbers >= 9),
        share(n.digits * 4, n.chars),
        share(n.numbers * 4, words),
        is(n.decimals > 0),
        share(n.capitals, words),
        some(n.lone_letters),
        share(n.lone_letters * 4, words),
        is(latex > 0),
        some(n.dollars / 2),
        some(n.money),
        some(n.percents),
        some(n.backslashes),
        some(n.carets),
        is(n.equals > 0),
        some(n.equals),
        is(n.operators > 0),
        some(n.operators),
        some(n.math_signs),
        share(maths * 8, n.chars),
        some(n.braces),
        some(n.brackets),
        some(n.calls),
        some(n.semicolon_ends),
        some(n.underscores),
        some(n.camels),
        some(n.backticks),
        is(n.backticks >= 6),
        some(n.arrows),
        is(n.questions > 0),
        is(matches!(end, '?' | '？' | '؟')),
        some(n.questions.saturating_sub(1)),
        some(n.exclamations),
        some(n.quotes),
        is(matches!(end, ':' | '：')),
        some(n.colons),
        some(n.commas),
        some(n.newlines),
        some(n.blank_lines),
        some(n.list_lines),
        some(n.indented_lines),
        is(n.options >= 2),
        some(n.placeholders),
        share(n.letters, words * 10),
        share(dense, n.chars),
        is(n.numbers >= 2 && asks),
        is(n.numbers >= 1 && quantity.all > 0),
    ]
}
