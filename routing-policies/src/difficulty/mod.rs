//! How much thinking a turn is worth: 0 for one that is best answered at once, 1 for one that gains most from thinking.
//!
//! A linear model over what a turn looks like (lengths, numbers, signs of mathematics and code), what it asks for (`concepts.txt`, many
//! languages), its words (weights that were distilled from a sentence encoder) and its runs of characters. It reads no more
//! than the two ends of a turn, uses whole numbers and IEEE operations in a fixed order, and so gives the same everywhere.

mod concepts;
mod counts;
mod features;
mod grams;
mod logistic;
mod model;
mod shape;
mod text;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use features::{Features, Piece, names};
pub use model::{WEIGHTS_BYTES_MAX, WeightsError, fingerprint};
pub use text::{HEAD_BYTES, TAIL_BYTES};

use logistic::logistic;
use model::Weights;

/// Turns of fewer words ("yes", "the other one") are read together with the turn before.
pub const CONTEXT_WORDS: u32 = 4;
/// Words that a turn counts as having at least, so that a single one does not decide alone.
const WORDS_MIN: f64 = 4.0;
/// Pieces weigh whole tenths.
const TENTHS: f64 = 10.0;

static BUILT_IN: LazyLock<Difficulty> = LazyLock::new(|| {
    // A test holds that they can be read.
    let weights = Weights::read(WEIGHTS).unwrap_or_default();
    Difficulty { weights }
});

/// The weights that this build carries.
const WEIGHTS: &[u8] = include_bytes!("weights.bin");

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Turn<'t> {
    /// What the user said last.
    pub text: &'t str,
    /// What the user said before that; empty where nothing.
    pub before: &'t str,
}

/// A part of a judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// A feature's name, or a word of the turn in double quotes.
    pub what: String,
    /// What it adds to the log-odds: more than 0 speaks for thinking.
    pub log_odds: f64,
}

/// The classifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Difficulty {
    weights: Weights,
}

impl Difficulty {
    /// With the weights that this build carries.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// With other weights.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WeightsError> {
        let weights = Weights::read(bytes)?;
        Ok(Self { weights })
    }

    /// How much thinking the turn is worth, 0.0 to 1.0: the share of such turns whose kind gains from it.
    #[must_use]
    pub fn score(&self, turn: &Turn<'_>) -> f64 {
        let own = Features::of(turn.text);
        let mut log_odds = self.log_odds(&own);
        let weight = weight(&own, turn);
        if weight < 1.0 {
            let before = self.log_odds(&Features::of(turn.before));
            log_odds = weight * log_odds + (1.0 - weight) * before;
        }
        logistic(log_odds)
    }

    /// What makes up the score, the greatest part first, and none that is 0. Parts of the turn before are marked by `before: `.
    #[must_use]
    pub fn explain(&self, turn: &Turn<'_>) -> Vec<Contribution> {
        let own = Features::of(turn.text);
        let weight = weight(&own, turn);
        let mut parts = self.parts(&own, "", weight);
        if weight < 1.0 {
            let before = Features::of(turn.before);
            parts.extend(self.parts(&before, "before: ", 1.0 - weight));
        }
        parts.retain(|part| part.log_odds != 0.0);
        parts.sort_by(|a, b| b.log_odds.abs().total_cmp(&a.log_odds.abs()));
        parts
    }

    fn log_odds(&self, features: &Features) -> f64 {
        let weights = &self.weights;
        let dense = features.dense.iter().zip(&weights.dense);
        let dense: f64 = dense
            .map(|(value, weight)| f64::from(*value) * weight)
            .sum();
        // Whole numbers: their order does not matter.
        let word = |piece: &Piece| i64::from(weights.word(piece.id) * piece.tenths());
        let run = |piece: &Piece| i64::from(weights.run(piece.id) * piece.tenths());
        let words: i64 = features.words.iter().map(word).sum();
        let runs: i64 = features.runs.iter().map(run).sum();
        weights.bias
            + dense
            + words as f64 * self.word_unit(features)
            + runs as f64 * self.run_unit(features)
    }

    /// What a step of a word's weight adds to the log-odds, in tenths: the more words, the less each.
    fn word_unit(&self, features: &Features) -> f64 {
        let words: i32 = features.words.iter().map(Piece::tenths).sum();
        self.weights.word_step / TENTHS / (f64::from(words) / TENTHS).max(WORDS_MIN).sqrt()
    }

    /// The same of a run of characters.
    fn run_unit(&self, features: &Features) -> f64 {
        let squares: i64 = features
            .runs
            .iter()
            .map(|piece| i64::from(piece.tenths().pow(2)))
            .sum();
        self.weights.run_step / (squares as f64).sqrt().max(TENTHS)
    }

    fn parts(&self, features: &Features, prefix: &str, weight: f64) -> Vec<Contribution> {
        let weights = &self.weights;
        let part = |what: String, log_odds: f64| Contribution {
            what: format!("{prefix}{what}"),
            log_odds: log_odds * weight,
        };
        let dense = features.dense.iter().zip(&weights.dense);
        let dense = names().into_iter().zip(dense);
        let mut parts = vec![part("bias".to_owned(), weights.bias)];
        parts.extend(dense.map(|(name, (value, weight))| part(name, f64::from(*value) * weight)));
        let mut words: BTreeMap<&str, f64> = BTreeMap::new();
        let (word, run) = (self.word_unit(features), self.run_unit(features));
        for piece in &features.words {
            let steps = f64::from(weights.word(piece.id) * piece.tenths());
            *words.entry(features.word(piece)).or_default() += steps * word;
        }
        for piece in &features.runs {
            let steps = f64::from(weights.run(piece.id) * piece.tenths());
            *words.entry(features.word(piece)).or_default() += steps * run;
        }
        parts.extend(
            words
                .into_iter()
                .map(|(word, log_odds)| part(format!("\"{word}\""), log_odds)),
        );
        parts
    }
}

/// How far the turn is judged by its own text, 0.0 to 1.0.
fn weight(own: &Features, turn: &Turn<'_>) -> f64 {
    if turn.before.is_empty() {
        return 1.0;
    }
    f64::from(own.count.min(CONTEXT_WORDS)) / f64::from(CONTEXT_WORDS)
}

#[cfg(test)]
mod tests;
