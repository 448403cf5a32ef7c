//! Blocks held by one sequence, and the cache that gives them out: pool and index moved together.

use crate::BLOCK_TOKENS;
use crate::block_key::{KeyChain, KeyMaker};
use crate::block_pool::{BlockId, BlockPool};
use crate::prefix_index::{PrefixIndex, Published};

/// Blocks that hold `tokens` tokens of KV.
pub fn blocks_for(tokens: usize) -> usize {
    tokens.div_ceil(BLOCK_TOKENS)
}

/// The blocks of one sequence, from its first token. Goes back through `KvCache::give_back`.
#[derive(Debug, Default)]
#[must_use = "a lease that is merely dropped keeps its blocks for ever"]
pub struct Lease {
    blocks: Vec<BlockId>,
    /// Blocks from the first that the index lists; these may be shared and are never written again.
    published: usize,
    /// A block was refused, or the cache was reset: successors would be unreachable or are unwanted.
    private: bool,
}

impl Lease {
    /// Block `i` holds positions `16·i .. 16·i + 16`.
    pub fn blocks(&self) -> &[BlockId] {
        &self.blocks
    }

    /// Keeps what is computed from now on out of the index.
    pub fn make_private(&mut self) {
        self.private = true;
    }
}

/// All KV blocks of a replica and what is known of their content.
#[derive(Debug)]
pub struct KvCache {
    pool: BlockPool,
    index: PrefixIndex,
    maker: KeyMaker,
    /// Sequences reuse each other's prefixes.
    sharing: bool,
}

impl KvCache {
    /// `capacity` free blocks; without `sharing` nothing is looked up or published.
    pub fn new(capacity: usize, maker: KeyMaker, sharing: bool) -> Self {
        Self {
            pool: BlockPool::new(capacity),
            index: PrefixIndex::new(capacity),
            maker,
            sharing,
        }
    }

    /// The blocks and their counts.
    pub fn pool(&self) -> &BlockPool {
        &self.pool
    }

    /// The blocks that hold the longest reusable prefix of `tokens`; nothing is held yet. Extends `chain` as needed.
    pub fn find(&self, chain: &mut KeyChain, tokens: &[u32]) -> Vec<BlockId> {
        if !self.sharing {
            return Vec::new();
        }
        chain.extend(&self.maker, tokens);
        self.index.lookup(chain, tokens)
    }

    /// Leases `blocks` blocks that begin with those of `hit`, or nothing when there is no room. An idle block of `hit`
    /// takes room too: once held it is no longer free for anyone.
    pub fn admit(&mut self, hit: &[BlockId], blocks: usize) -> Option<Lease> {
        let idle = hit
            .iter()
            .filter(|&&block| self.pool.refs(block) == 0)
            .count();
        if blocks.saturating_sub(hit.len()) + idle > self.pool.available() {
            return None;
        }
        hit.iter().for_each(|&block| self.pool.hold(block));
        let mut lease = Lease {
            blocks: hit.to_vec(),
            published: hit.len(),
            private: false,
        };
        let room = self.grow(&mut lease, blocks);
        debug_assert!(room, "the room was counted above");
        Some(lease)
    }

    /// Makes `lease` hold at least `blocks` blocks, or leaves it as it is and says no.
    pub fn grow(&mut self, lease: &mut Lease, blocks: usize) -> bool {
        let missing = blocks.saturating_sub(lease.blocks.len());
        if missing > self.pool.available() {
            return false;
        }
        for _ in 0..missing {
            let Some(taken) = self.pool.take() else { break };
            if taken.evicted {
                self.index.forget(taken.block);
            }
            lease.blocks.push(taken.block);
        }
        true
    }

    /// Lists the full blocks among the first `computed` tokens, after the step that computed them has succeeded. A
    /// block whose content is listed already is swapped for its twin, which holds the same bits (A15): one copy stays,
    /// and since every sequence then holds the listed blocks of its whole prefix, no block is ever reused before the
    /// blocks that follow it.
    pub fn publish(
        &mut self,
        lease: &mut Lease,
        chain: &mut KeyChain,
        tokens: &[u32],
        computed: usize,
    ) {
        if !self.sharing || lease.private {
            return;
        }
        chain.extend(&self.maker, &tokens[..computed]);
        while lease.published < computed / BLOCK_TOKENS {
            let index = lease.published;
            match self.index.publish(chain, tokens, &lease.blocks, index) {
                Published::New => self.pool.mark_cached(lease.blocks[index]),
                Published::Same(twin) => {
                    self.pool.hold(twin);
                    let own = std::mem::replace(&mut lease.blocks[index], twin);
                    self.pool.give_back(&[own]);
                }
                Published::Refused => return lease.make_private(),
            }
            lease.published += 1;
        }
    }

    /// Takes the blocks of a sequence back. What is published stays reusable until its block is needed.
    pub fn give_back(&mut self, lease: Lease) {
        self.pool.give_back(&lease.blocks);
    }

    /// Forgets all content. Leases that exist must be made private too.
    pub fn forget_all(&mut self) {
        self.index.clear();
        self.pool.forget_contents();
    }

    /// Panics unless pool and index agree. For tests.
    pub fn check_invariants(&self) {
        self.pool.check_invariants();
        self.index.check_invariants();
        for block in 0..self.pool.capacity() as BlockId {
            let listed = self.index.lists(block);
            assert_eq!(
                self.pool.is_cached(block),
                listed,
                "block {block}: pool and index differ"
            );
        }
    }
}

#[cfg(test)]
mod tests;
