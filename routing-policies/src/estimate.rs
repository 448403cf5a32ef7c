//! How many tokens so many bytes are, per model, learned from what replicas count.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

/// Models whose ratio is remembered; further ones are estimated by the first guess.
pub const MODELS_MAX: usize = 256;
/// Bytes a token before anything was counted.
const FIRST_GUESS: f64 = 4.0;
/// The first guess weighs like a prompt of this many tokens.
const FIRST_GUESS_TOKENS: f64 = 500.0;
/// What a prompt still weighs one prompt later: about the last fifty count.
const REMEMBERED: f64 = 0.98;
/// Ratios outside are no text (an image is many bytes and few tokens) and teach nothing.
const BYTES_PER_TOKEN_MIN: f64 = 0.5;
/// See [`BYTES_PER_TOKEN_MIN`].
const BYTES_PER_TOKEN_MAX: f64 = 32.0;

/// Names a model in [`Estimates`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelKey(u64);

impl ModelKey {
    /// The key of a model's name.
    #[must_use]
    pub fn of(model: &str) -> Self {
        Self(xxh3_64(model.as_bytes()))
    }
}

/// The ratios of all models.
#[derive(Clone, Debug, Default)]
pub struct Estimates {
    ratios: BTreeMap<ModelKey, Ratio>,
}

/// Decayed sums: long prompts count for more, and noise of short ones for less.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    bytes: f64,
    tokens: f64,
}

impl Estimates {
    /// Bytes of a request's tools and messages that make one token of the model's prompt.
    #[must_use]
    pub fn bytes_per_token(&self, model: ModelKey) -> f64 {
        self.ratios
            .get(&model)
            .map_or(FIRST_GUESS, |ratio| ratio.bytes / ratio.tokens)
    }

    /// A replica counted `tokens` in a prompt whose tools and messages were `bytes` long.
    pub fn learn(&mut self, model: ModelKey, bytes: u64, tokens: u64) {
        let (bytes, tokens) = (bytes as f64, tokens as f64);
        let plausible = (BYTES_PER_TOKEN_MIN..=BYTES_PER_TOKEN_MAX).contains(&(bytes / tokens));
        let room = self.ratios.len() < MODELS_MAX || self.ratios.contains_key(&model);
        if !plausible || !room {
            return;
        }
        let ratio = self.ratios.entry(model).or_insert(Ratio {
            bytes: FIRST_GUESS * FIRST_GUESS_TOKENS,
            tokens: FIRST_GUESS_TOKENS,
        });
        ratio.bytes = ratio.bytes * REMEMBERED + bytes;
        ratio.tokens = ratio.tokens * REMEMBERED + tokens;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `prompts` of (bytes, tokens), said a hundred times, teach a ratio within 1 % of `expect`.
    #[track_caller]
    fn check(prompts: &[(u64, u64)], expect: f64) {
        let (model, other) = (ModelKey::of("m"), ModelKey::of("other"));
        let mut estimates = Estimates::default();
        for _ in 0..100 {
            for (bytes, tokens) in prompts {
                estimates.learn(model, *bytes, *tokens);
            }
        }
        let ratio = estimates.bytes_per_token(model);
        assert!((ratio - expect).abs() < 0.01 * expect, "{ratio}");
        assert!((estimates.bytes_per_token(other) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn the_ratio_is_that_of_what_was_counted() {
        check(&[], 4.0);
        check(&[(3_000, 1_000)], 3.0);
        check(&[(30_000, 10_000), (50, 10)], 3.0);
    }

    #[test]
    fn what_cannot_be_text_teaches_nothing() {
        check(&[(1_000_000, 300)], 4.0);
        check(&[(0, 100), (100, 0), (0, 0)], 4.0);
        check(&[(10, 100)], 4.0);
    }

    #[test]
    fn past_the_bound_further_models_are_guessed() {
        let mut estimates = Estimates::default();
        for model in 0..=MODELS_MAX {
            estimates.learn(ModelKey::of(&model.to_string()), 3_000, 1_000);
        }
        assert_eq!(estimates.ratios.len(), MODELS_MAX);
    }
}
