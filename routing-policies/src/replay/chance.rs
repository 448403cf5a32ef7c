//! Chance as an argument: a small generator, so that the same seed gives the same replay on every host.

/// A stream of numbers from one seed (a counter, mixed).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        ((u128::from(mix(self.0)) * bound as u128) >> 64) as usize
    }

    /// The place of the least cost; one of them by chance where several are least.
    pub fn least(&mut self, costs: impl IntoIterator<Item = f64> + Clone) -> usize {
        let least = costs.clone().into_iter().fold(f64::INFINITY, f64::min);
        let places = || {
            costs
                .clone()
                .into_iter()
                .enumerate()
                .filter(|(_, cost)| *cost <= least)
        };
        let several = places().count();
        let pick = if several > 1 { self.below(several) } else { 0 };
        places().nth(pick).map_or(0, |(place, _)| place)
    }
}

/// The replica that `key` prefers among `replicas`: highest random weight.
#[must_use]
pub fn rendezvous(key: u64, replicas: usize) -> usize {
    (0..replicas)
        .max_by_key(|&replica| weight(key, replica))
        .unwrap_or(0)
}

/// How strongly `key` wants `replica`.
#[must_use]
pub(super) fn weight(key: u64, replica: usize) -> u64 {
    mix(mix(key)
        .wrapping_add(replica as u64)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
