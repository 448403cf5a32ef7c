//! A block of a prompt, and how tables find it.

use std::hash::{BuildHasherDefault, Hasher};

/// A run of a prompt's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Names this run and everything before it: prefix-chained, so equal keys mean equal prompts up to here.
    pub key: u64,
    /// Its length in tokens, as well as the gateway knows.
    pub tokens: u32,
}

/// For tables whose keys are block keys.
pub(crate) type BlockHash = BuildHasherDefault<BlockHasher>;

/// Hashes one `u64` with one multiplication: block keys are hashes already, so a table needs only their bits spread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockHasher(u64);

impl Hasher for BlockHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        let mixed = (self.0 ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
