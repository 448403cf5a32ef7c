use expect_test::expect_file;
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::*;

fn score(text: &str, before: &str) -> f64 {
    Difficulty::built_in().score(&Turn { text, before })
}

/// Texts in many languages, with nothing but ASCII between them.
fn texts() -> Vec<String> {
    let rows = include_str!("known.jsonl").lines();
    let row = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    rows.map(|line| row(line)["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_built_in_weights_fit_this_build() {
    assert_eq!(
        Weights::read(WEIGHTS).as_ref(),
        Ok(&Difficulty::built_in().weights)
    );
}

/// A change here means that weights must be trained anew, and `FEATURES_VERSION` go up where names did not change.
#[test]
fn features_and_scores_are_the_same_to_the_bit_on_every_host() {
    let mut shown = String::from("features          score     text\n");
    for text in texts() {
        let found = Features::of(&text);
        let pieces = found.words.iter().chain(&found.runs);
        let dense = found
            .dense
            .iter()
            .flat_map(|value| value.to_bits().to_le_bytes());
        let bytes: Vec<u8> = pieces
            .flat_map(|piece| (2 * u64::from(piece.id) + u64::from(piece.edge)).to_le_bytes())
            .chain(dense)
            .collect();
        let score = score(&text, "");
        shown += &format!("{:016x}  {score:.6}  {text:?}\n", xxh3_64(&bytes));
    }
    expect_file!["known.txt"].assert_eq(&shown);
}

#[test]
fn a_short_turn_is_judged_with_the_turn_before() {
    let hard = "Prove that there are infinitely many primes.";
    let (alone, after) = (score("yes", ""), score("yes", hard));
    assert!(alone < after && after < score(hard, ""), "{alone} {after}");
    assert_eq!(
        score("What is the capital of Australia?", hard),
        score("What is the capital of Australia?", "")
    );
}

#[test]
fn the_parts_add_up_to_the_score() {
    for text in texts() {
        let turn = Turn {
            text: &text,
            before: "How many primes are there below 100?",
        };
        let sum: f64 = Difficulty::built_in()
            .explain(&turn)
            .iter()
            .map(|part| part.log_odds)
            .sum();
        assert!(
            (logistic(sum) - Difficulty::built_in().score(&turn)).abs() < 1e-9,
            "{text}"
        );
    }
}

#[test]
fn only_the_two_ends_of_a_long_turn_are_read() {
    let (head, tail) = (
        "a b ".repeat(HEAD_BYTES / 4),
        " c?é".repeat(TAIL_BYTES / 5 + 1),
    );
    let cut = (tail.len() - TAIL_BYTES..).find(|at| tail.is_char_boundary(*at));
    let tail = &tail[cut.unwrap()..];
    let of = |middle: &str| Features::of(&format!("{head}{}{tail}", middle.repeat(40_000)));
    assert_eq!(of("x + y = 1 "), of("Hello! 你 "));
}

#[test]
fn a_weights_file_that_is_not_right_is_refused() {
    let edit = |at: usize, to: u8| {
        let mut bytes = WEIGHTS.to_vec();
        bytes[at] = to;
        Difficulty::from_bytes(&bytes).unwrap_err()
    };
    assert_eq!(Difficulty::from_bytes(b""), Err(WeightsError::NoWeights));
    assert_eq!(
        Difficulty::from_bytes(&vec![0; WEIGHTS_BYTES_MAX + 1]),
        Err(WeightsError::TooLarge)
    );
    assert_eq!(edit(0, b'p'), WeightsError::NoWeights);
    assert_eq!(edit(8, 9), WeightsError::Version(9));
    assert_eq!(edit(WEIGHTS.len() / 2, 200), WeightsError::Damaged);
    for cut in [9, 20, 40, 60, WEIGHTS.len() - 1] {
        assert_eq!(
            Difficulty::from_bytes(&WEIGHTS[..cut]),
            Err(WeightsError::Damaged)
        );
    }
    let mut other = WEIGHTS[..WEIGHTS.len() - 8].to_vec();
    other[12] ^= 1;
    let sum = xxh3_64(&other).to_le_bytes();
    other.extend(sum);
    assert_eq!(
        Difficulty::from_bytes(&other),
        Err(WeightsError::OtherFeatures)
    );
}

proptest! {
    #[test]
    fn any_text_has_a_score(text in r"([a-cA-Z0-9 .,?$\\{}=+\n-]|İ|ß|你|ก|क|्|é|е́|ﬁ|𝑥|①|ा){0,60}") {
        let score = score(&text, "");
        prop_assert!(score > 0.0 && score < 1.0);
        prop_assert!(Features::of(&text).dense.iter().all(|value| (0.0..=1.0).contains(value)));
    }
}
