//! The logistic function from sums and products alone: what a host's own `exp` gives differs in its last bits.

/// Log-odds beyond which nothing changes.
const LOG_ODDS_MAX: f64 = 30.0;
/// Terms of the series: for arguments up to half of ln 2 the rest is below 1e-16.
const TERMS: u32 = 14;

/// The probability of log-odds.
pub(super) fn logistic(log_odds: f64) -> f64 {
    1.0 / (1.0 + exp(-log_odds.clamp(-LOG_ODDS_MAX, LOG_ODDS_MAX)))
}

/// e to the power of `x`, which lies within ±[`LOG_ODDS_MAX`].
fn exp(x: f64) -> f64 {
    let twos = (x * std::f64::consts::LOG2_E).round();
    let rest = x - twos * std::f64::consts::LN_2;
    let sum = (1..=TERMS)
        .rev()
        .fold(1.0, |sum, term| 1.0 + sum * rest / f64::from(term));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a whole number within 44 of 0"
    )]
    let twos = twos as i32;
    sum * 2f64.powi(twos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_logistic_function() {
        for step in -300..=300 {
            let x = f64::from(step) / 10.0;
            let expected = 1.0 / (1.0 + (-x).exp());
            assert!((logistic(x) - expected).abs() < 1e-15, "{x}");
        }
        assert_eq!(logistic(0.0), 0.5);
        assert!(logistic(1e9) < 1.0 && logistic(-1e9) > 0.0);
    }
}
