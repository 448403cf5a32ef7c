//! Which blocks hold the KV of which tokens.
//!
//! The key proposes, the tokens decide (A10): an entry is reused only when its own tokens are those asked for and its
//! parent is the very entry that was matched before it, so that by induction the whole prefix is equal. With any digest,
//! even one of two bits, a wrong block is never given out; a collision costs a miss.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::BLOCK_TOKENS;
use crate::block_key::{BlockKey, KeyChain};
use crate::block_pool::BlockId;

/// The content of one published block.
#[derive(Debug)]
struct Entry {
    key: BlockKey,
    /// Names this publication: a block that is reused and published again gets another.
    serial: u64,
    parent: Parent,
    tokens: [u32; BLOCK_TOKENS],
}

/// What comes before a block.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Parent {
    /// Nothing; only sequences with an equal salt may share it.
    Root(Option<Arc<str>>),
    /// The publication with this serial.
    Serial(u64),
}

/// What became of a block that a sequence offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// It is listed now.
    New,
    /// This other block with the same content is listed already.
    Same(BlockId),
    /// It is not listed and neither can its successors be: its parent is not listed, or its key names other content.
    Refused,
}

/// Published blocks by key, and back.
#[derive(Debug)]
pub struct PrefixIndex {
    by_key: BTreeMap<BlockKey, BlockId>,
    /// `(capacity)` the publication in each block.
    entries: Vec<Option<Entry>>,
    serial_next: u64,
}

impl PrefixIndex {
    /// An empty index over blocks `0..capacity`.
    pub fn new(capacity: usize) -> Self {
        let entries = std::iter::repeat_with(|| None).take(capacity).collect();
        Self {
            by_key: BTreeMap::new(),
            entries,
            serial_next: 0,
        }
    }

    /// The blocks that hold the longest published prefix of `tokens`: full blocks only, and at most all tokens but the
    /// last, which must be computed for its logits. `chain` has the keys of all full blocks of `tokens`.
    pub fn lookup(&self, chain: &KeyChain, tokens: &[u32]) -> Vec<BlockId> {
        let blocks_max = tokens.len().saturating_sub(1) / BLOCK_TOKENS;
        let mut parent = Parent::Root(chain.salt().cloned());
        let mut found = Vec::new();
        for (key, block_tokens) in chain
            .keys()
            .iter()
            .zip(tokens.chunks_exact(BLOCK_TOKENS))
            .take(blocks_max)
        {
            let Some(&block) = self.by_key.get(key) else {
                break;
            };
            let Some(entry) = self.entry(block).filter(|e| e.holds(&parent, block_tokens)) else {
                break;
            };
            parent = Parent::Serial(entry.serial);
            found.push(block);
        }
        found
    }

    /// Offers block number `index` of a sequence, computed in full, whose blocks so far are `table`: those before
    /// `index` must have been published, or swapped for their published twins, in this order.
    pub fn publish(
        &mut self,
        chain: &KeyChain,
        tokens: &[u32],
        table: &[BlockId],
        index: usize,
    ) -> Published {
        let parent = match index.checked_sub(1).map(|before| self.entry(table[before])) {
            None => Parent::Root(chain.salt().cloned()),
            Some(Some(entry)) => Parent::Serial(entry.serial),
            Some(None) => return Published::Refused,
        };
        let first = index * BLOCK_TOKENS;
        let (Some(&key), Some(Ok(block_tokens))) = (
            chain.keys().get(index),
            tokens
                .get(first..first + BLOCK_TOKENS)
                .map(<[u32; BLOCK_TOKENS]>::try_from),
        ) else {
            return Published::Refused;
        };
        if let Some(&twin) = self.by_key.get(&key) {
            let same = self
                .entry(twin)
                .is_some_and(|e| e.holds(&parent, &block_tokens));
            return if same {
                Published::Same(twin)
            } else {
                Published::Refused
            };
        }
        let block = table[index];
        self.by_key.insert(key, block);
        let serial = self.serial_next;
        self.entries[block as usize] = Some(Entry {
            key,
            serial,
            parent,
            tokens: block_tokens,
        });
        self.serial_next += 1;
        Published::New
    }

    /// Forgets the content of `block`, which is about to be overwritten.
    pub fn forget(&mut self, block: BlockId) {
        if let Some(entry) = self.entries[block as usize].take() {
            self.by_key.remove(&entry.key);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.by_key.clear();
        self.entries.fill_with(|| None);
    }

    /// Whether the content of `block` is listed.
    pub fn lists(&self, block: BlockId) -> bool {
        self.entry(block).is_some()
    }

    /// Panics unless keys and entries agree and every entry's parent is listed. For tests.
    pub fn check_invariants(&self) {
        let entries: Vec<_> = self.entries.iter().flatten().collect();
        assert_eq!(self.by_key.len(), entries.len());
        for (key, &block) in &self.by_key {
            assert_eq!(self.entry(block).map(|entry| entry.key), Some(*key));
        }
        for entry in &entries {
            if let Parent::Serial(serial) = entry.parent {
                assert!(
                    entries.iter().any(|e| e.serial == serial),
                    "an entry outlives its parent"
                );
            }
        }
    }

    fn entry(&self, block: BlockId) -> Option<&Entry> {
        self.entries[block as usize].as_ref()
    }
}

impl Entry {
    fn holds(&self, parent: &Parent, tokens: &[u32]) -> bool {
        self.parent == *parent && self.tokens == *tokens
    }
}
