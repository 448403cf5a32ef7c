//! Random numbers by counter: the n-th number of a seed needs none of those before it.

/// Odd, with well mixed bits: 2^64 divided by the golden ratio.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// Every bit of the result depends on every bit of `x`; one to one (David Stafford's variant 13 of MurmurHash3's end).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// From 0 up to but not 1, in steps of 2^-53. A function of seed and position, the same on every host.
pub(super) fn uniform(seed: u64, position: u64) -> f64 {
    let bits = mix(mix(seed.wrapping_add(STRIDE)) ^ position.wrapping_mul(STRIDE));
    (bits >> 11) as f64 * (-53f64).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds must mean the same after an upgrade: these may change only with a note in the changelog.
    #[test]
    fn numbers_are_pinned() {
        let got = [(0, 0), (0, 1), (1, 0), (u64::MAX, 7)]
            .map(|(seed, position)| uniform(seed, position).to_bits());
        let expect = [
            0x3FD2_0860_89BF_CF34,
            0x3F8C_BD59_4BA0_3400,
            0x3FEB_9C84_7F90_581A,
            0x3FDA_7CAA_EB5A_ACC4,
        ];
        assert_eq!(got, expect);
    }

    #[test]
    fn seeds_and_positions_spread_evenly() {
        for fixed in 0..4u64 {
            for by_seed in [true, false] {
                let mut bins = [0u32; 16];
                for n in 0..16_000 {
                    let (seed, position) = if by_seed { (n, fixed) } else { (fixed, n) };
                    bins[(uniform(seed, position) * 16.0) as usize] += 1;
                }
                assert!(bins.iter().all(|bin| (850..1150).contains(bin)), "{bins:?}");
            }
        }
    }
}
