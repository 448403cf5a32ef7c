//! How fast replicas prefill, learned from the times of first tokens.

/// What a sample still weighs one first token later: about the last hundred count.
const REMEMBERED: f64 = 0.99;
/// The line before anything is known: no fixed part, 10,000 tokens a second. A few first tokens correct it.
const FIRST_GUESS: Line = Line {
    fixed_s: 0.0,
    per_token_s: 1e-4,
};
/// The guess weighs like one request of no tokens and one of this many.
const FIRST_GUESS_TOKENS: f64 = 1_000.0;

/// Seconds of prefill = `fixed_s` + `per_token_s` × tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) fixed_s: f64,
    pub(super) per_token_s: f64,
}

/// The line through what prefills took: least squares over the recent past of the whole fleet. One replica alone is slow to teach
/// (a tenth of the requests, and of one kind), and a slower one shows itself by its longer queue.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    samples: f64,
    tokens: f64,
    seconds: f64,
    tokens_tokens: f64,
    tokens_seconds: f64,
}

impl Default for Pace {
    fn default() -> Self {
        let mut pace = Self {
            samples: 0.0,
            tokens: 0.0,
            seconds: 0.0,
            tokens_tokens: 0.0,
            tokens_seconds: 0.0,
        };
        for tokens in [0.0, FIRST_GUESS_TOKENS] {
            pace.add(
                tokens,
                FIRST_GUESS.fixed_s + FIRST_GUESS.per_token_s * tokens,
            );
        }
        pace
    }
}

impl Pace {
    /// A prefill of `tokens` took `seconds`.
    pub(super) fn add(&mut self, tokens: f64, seconds: f64) {
        let keep = |sum: &mut f64, more: f64| *sum = *sum * REMEMBERED + more;
        keep(&mut self.samples, 1.0);
        keep(&mut self.tokens, tokens);
        keep(&mut self.seconds, seconds);
        keep(&mut self.tokens_tokens, tokens * tokens);
        keep(&mut self.tokens_seconds, tokens * seconds);
    }

    /// The line now. Where the samples give none that makes sense (all of one length, or falling), one through the origin.
    pub(super) fn line(&self) -> Line {
        let spread = self.samples * self.tokens_tokens - self.tokens * self.tokens;
        if spread > 1e-6 * self.samples * self.tokens_tokens {
            let per_token_s =
                (self.samples * self.tokens_seconds - self.tokens * self.seconds) / spread;
            let fixed_s = (self.seconds - per_token_s * self.tokens) / self.samples;
            if per_token_s > 0.0 && fixed_s >= 0.0 {
                return Line {
                    fixed_s,
                    per_token_s,
                };
            }
        }
        // At least a nanosecond a token, so that nothing divides by zero.
        let per_token_s = (self.seconds / self.tokens.max(1.0)).max(1e-9);
        Line {
            fixed_s: 0.0,
            per_token_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line learned from `samples` of (tokens, seconds), said fifty times, is within a percent of `expect`.
    #[track_caller]
    fn check(samples: &[(f64, f64)], expect: (f64, f64)) {
        let mut pace = Pace::default();
        for &(tokens, seconds) in samples.iter().cycle().take(1_000) {
            pace.add(tokens, seconds);
        }
        let line = pace.line();
        let near = |a: f64, b: f64| (a - b).abs() <= 0.01 * b + 1e-4;
        assert!(near(line.fixed_s, expect.0), "{line:?}");
        assert!(
            near(line.per_token_s * 1_000.0, expect.1 * 1_000.0),
            "{line:?}"
        );
    }

    #[test]
    fn the_fixed_part_is_told_from_the_rate() {
        check(&[(100.0, 0.035), (2_000.0, 0.415)], (0.015, 2e-4));
    }

    #[test]
    fn one_length_alone_gives_a_rate() {
        check(&[(500.0, 0.05)], (0.0, 1e-4));
    }

    #[test]
    fn longer_prefills_that_took_less_give_a_plain_rate() {
        check(&[(100.0, 0.3), (200.0, 0.0)], (0.0, 1e-3));
    }

    #[test]
    fn nothing_known_is_the_first_guess() {
        assert_eq!(Pace::default().line(), FIRST_GUESS);
    }
}
