//! The few functions whose exact roundings are part of the backends' contract, as plain scalar code.

/// Partial sums kept side by side in a `lane_sum`.
pub const LANES: usize = 16;

/// Below this `exp` gives its value here, about 1.2e-38: the least that scaling by a normal power of two can make.
pub const EXP_MIN: f32 = -87.3;
/// Above this `exp` gives its value here, about 1.7e38.
pub const EXP_MAX: f32 = 88.0;
/// Adding this rounds a small float to an integer, which then stands in the low bits of the sum.
pub const ROUND_MAGIC: f32 = 12_582_912.0;
/// Upper part of ln 2, short enough that its product with an exponent is exact.
pub const LN2_HIGH: f32 = 0.693_359_4;
/// The rest of ln 2.
pub const LN2_LOW: f32 = -2.121_944_4e-4;
/// Coefficients of the polynomial for e^r on |r| ≤ ln2 / 2, highest power first: r⁷/7! down to 1.
pub const EXP_COEFFICIENTS: [f32; 8] = [
    1.0 / 5040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

/// `a` where it is greater, else `b`: so a NaN in either gives `b`.
pub fn greater(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// `a` where it is less, else `b`: so a NaN in either gives `b`.
pub fn lesser(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// e^x within 2 units in the last place, clamped to `EXP_MIN ..= EXP_MAX`; NaN gives NaN.
pub fn exp(x: f32) -> f32 {
    let x = lesser(EXP_MAX, greater(EXP_MIN, x));
    // x = n·ln2 + r with integer n and |r| ≤ ln2 / 2.
    let rounded = x.mul_add(std::f32::consts::LOG2_E, ROUND_MAGIC);
    let n = rounded - ROUND_MAGIC;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    let mut value = EXP_COEFFICIENTS[0];
    for &coefficient in &EXP_COEFFICIENTS[1..] {
        value = value.mul_add(r, coefficient);
    }
    // 2^n: n stands in the low bits of `rounded`; shifted into the exponent of 1.0.
    value * f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0f32.to_bits()))
}

/// x · sigmoid(x), as x / (1 + exp(−x)).
pub fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// Folds the lanes in halves: 8 + 8, 4 + 4, 2 + 2, 1 + 1.
pub fn fold_lanes(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_to_the_true_value_over_its_whole_range() {
        let mut x = EXP_MIN;
        while x <= EXP_MAX {
            let truth = f64::from(x).exp();
            let error = (f64::from(exp(x)) - truth).abs() / truth;
            assert!(error < 1.5e-7, "exp({x}) = {} is off by {error}", exp(x));
            x += 0.003_7;
        }
    }

    #[test]
    fn exp_of_zero_is_one_and_nan_stays_nan() {
        assert_eq!(exp(0.0).to_bits(), 1.0f32.to_bits());
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(exp(f32::NEG_INFINITY), exp(EXP_MIN));
        assert_eq!(exp(f32::INFINITY), exp(EXP_MAX));
    }

    #[test]
    fn folding_adds_every_lane_once() {
        let lanes = std::array::from_fn(|i| 2.0f32.powi(i as i32));
        assert_eq!(fold_lanes(lanes), 65_535.0);
    }
}
