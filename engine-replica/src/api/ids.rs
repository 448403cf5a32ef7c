//! Names and seeds that differ from each other, and after each start.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A keyed hash of a counter; the key comes from the system's own randomness when the process starts. Good enough to
/// tell requests apart and to seed a sampler; no secret hangs on it.
pub(crate) struct Ids {
    keys: [RandomState; 2],
    next: AtomicU64,
}

impl Ids {
    pub(crate) fn new() -> Ids {
        Ids {
            keys: [RandomState::new(), RandomState::new()],
            next: AtomicU64::new(0),
        }
    }

    /// 64 bits that no one can guess from the ones before.
    pub(crate) fn random(&self) -> u64 {
        self.keys[0].hash_one(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// `prefix` and 32 hexadecimal digits.
    pub(crate) fn name(&self, prefix: &str) -> String {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let [high, low] = [&self.keys[0], &self.keys[1]].map(|key| key.hash_one(count));
        format!("{prefix}{high:016x}{low:016x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_within_a_process_and_between_two() {
        let (a, b) = (Ids::new(), Ids::new());
        let names = [a.name("r-"), a.name("r-"), b.name("r-"), b.name("r-")];
        for (i, name) in names.iter().enumerate() {
            assert_eq!(name.len(), 34);
            assert!(!names[..i].contains(name));
        }
    }
}
