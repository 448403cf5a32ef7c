//! Names for KV blocks: a hash chain over everything that a block's KV depends on.
//!
//! A key is `digest(encoding)` with this encoding, so that replicas and builds agree on it:
//!
//! ```text
//! seed    = "pinion.kv.seed.v1\n"  u32 block size  u32 length  model identity
//! block   = "pinion.kv.block.v1\n" parent (32 bytes; the seed's digest for block 0)
//!           u32 token count  u32 × tokens  extras
//! extra   = u8 tag  u32 length  bytes              (tag 1: the tenant's cache salt, in block 0 only)
//! ```
//!
//! All integers are little endian. Tags and lengths keep unlike extras apart; the salt reaches later blocks through
//! their parent. The key only proposes: `prefix_index` compares tokens before anything is reused (A10).

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::BLOCK_TOKENS;

/// Bytes of a key: the whole of a SHA-256.
pub const BLOCK_KEY_BYTES: usize = 32;

/// The name of a block's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockKey(pub [u8; BLOCK_KEY_BYTES]);

const SEED_DOMAIN: &[u8] = b"pinion.kv.seed.v1\n";
const BLOCK_DOMAIN: &[u8] = b"pinion.kv.block.v1\n";
const TAG_CACHE_SALT: u8 = 1;

/// Makes keys for one model.
#[derive(Clone, Copy, Debug)]
pub struct KeyMaker {
    seed: BlockKey,
    digest: fn(&[u8]) -> BlockKey,
}

impl KeyMaker {
    /// Keys for the model that `model_identity` names: checkpoint, revision, KV type, whatever changes the KV.
    pub fn new(model_identity: &str) -> Self {
        Self::with_digest(model_identity, |bytes| {
            BlockKey(Sha256::digest(bytes).into())
        })
    }

    /// As `new` with a digest of the caller's choice: a short one shows that correctness does not hang on it.
    pub fn with_digest(model_identity: &str, digest: fn(&[u8]) -> BlockKey) -> Self {
        let mut bytes = SEED_DOMAIN.to_vec();
        bytes.extend((BLOCK_TOKENS as u32).to_le_bytes());
        bytes.extend((model_identity.len() as u32).to_le_bytes());
        bytes.extend(model_identity.as_bytes());
        Self {
            seed: digest(&bytes),
            digest,
        }
    }

    fn key(&self, parent: Option<BlockKey>, tokens: &[u32], salt: Option<&str>) -> BlockKey {
        let mut bytes = BLOCK_DOMAIN.to_vec();
        bytes.extend(parent.unwrap_or(self.seed).0);
        bytes.extend((tokens.len() as u32).to_le_bytes());
        bytes.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
        if let Some(salt) = salt.filter(|_| parent.is_none()) {
            bytes.push(TAG_CACHE_SALT);
            bytes.extend((salt.len() as u32).to_le_bytes());
            bytes.extend(salt.as_bytes());
        }
        (self.digest)(&bytes)
    }
}

/// The keys of one sequence's full blocks, each computed once.
#[derive(Clone, Debug)]
pub struct KeyChain {
    salt: Option<Arc<str>>,
    keys: Vec<BlockKey>,
}

impl KeyChain {
    /// An empty chain; sequences share blocks only under an equal `salt`.
    pub fn new(salt: Option<Arc<str>>) -> Self {
        Self {
            salt,
            keys: Vec::new(),
        }
    }

    /// Adds keys for the blocks of `tokens` that have become full. `tokens` only ever grows at its end.
    pub fn extend(&mut self, maker: &KeyMaker, tokens: &[u32]) {
        for block in tokens.chunks_exact(BLOCK_TOKENS).skip(self.keys.len()) {
            let key = maker.key(self.keys.last().copied(), block, self.salt.as_deref());
            self.keys.push(key);
        }
    }

    /// One key for each full block, from the first.
    pub fn keys(&self) -> &[BlockKey] {
        &self.keys
    }

    /// The tenant's salt.
    pub fn salt(&self) -> Option<&Arc<str>> {
        self.salt.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(identity: &str, salt: Option<&str>, tokens: &[u32]) -> Vec<String> {
        let mut chain = KeyChain::new(salt.map(Arc::from));
        chain.extend(&KeyMaker::new(identity), tokens);
        let hex = |key: &BlockKey| key.0.iter().map(|b| format!("{b:02x}")).collect();
        chain.keys().iter().map(hex).collect()
    }

    /// Computed apart from this code, with Python's hashlib and struct.
    #[test]
    fn keys_are_those_of_the_documented_encoding() {
        let tokens: Vec<u32> = (0..33).collect();
        assert_eq!(
            chain("tiny@1", None, &tokens),
            [
                "750b3c3b5d4b54ad96f71cf717aa9a24d85ffe8aca9003b0896db10e65cb99e7",
                "28e26bf560da568f35ba388ba7a70dd4ec2e1f20052065b0d385954a295fa011",
            ]
        );
        assert_eq!(
            chain("tiny@1", Some("tenant-a"), &tokens),
            [
                "5edb892d5d3a6f9cc733305ff9c7c727c0624aebb2899698d27288094752b7b4",
                "01887c36d8489e0b9328f14f7b858ad370bbd46a1668b9ca8305661cef2a1699",
            ]
        );
    }

    #[test]
    fn anything_that_changes_the_kv_changes_every_key() {
        let tokens: Vec<u32> = (0..32).collect();
        let mut other_head = tokens.clone();
        other_head[0] = 99;
        let variants = [
            chain("m", None, &tokens),
            chain("m2", None, &tokens),
            chain("m", Some(""), &tokens),
            chain("m", Some("a"), &tokens),
            chain("m", Some("b"), &tokens),
            chain("m", None, &other_head),
        ];
        for (i, a) in variants.iter().enumerate() {
            for b in &variants[i + 1..] {
                assert!(a[0] != b[0] && a[1] != b[1]);
            }
        }
    }

    #[test]
    fn growing_a_chain_token_by_token_gives_the_same_keys() {
        let tokens: Vec<u32> = (0..50).map(|i| i % 3).collect();
        let maker = KeyMaker::new("m");
        let mut grown = KeyChain::new(None);
        for end in 0..=tokens.len() {
            grown.extend(&maker, &tokens[..end]);
            assert_eq!(grown.keys().len(), end / BLOCK_TOKENS);
        }
        let mut whole = KeyChain::new(None);
        whole.extend(&maker, &tokens);
        assert_eq!(grown.keys(), whole.keys());
    }
}
