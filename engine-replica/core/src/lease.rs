//! Blocks held by one sequence, and the cache that gives them out: pool and index moved together.

use crate::BLOCK_TOKENS;
use crate::block_key::{KeyChain, KeyMaker};
use crate::block_pool::{BlockId, BlockPool};
use crate::eviction::{Millis, OwnerId, SessionKey};
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
    /// The session that it is for.
    owner: OwnerId,
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

    /// A sequence of `session` has come; goes with `leave`.
    pub(crate) fn enter(&mut self, session: &SessionKey) -> OwnerId {
        self.pool.enter(session)
    }

    /// A sequence that entered as `owner` is gone, having given its lease back; its session is worth keeping until
    /// `keep_until`, if that was said.
    pub(crate) fn leave(&mut self, owner: OwnerId, keep_until: Option<Millis>) {
        self.pool.leave(owner, keep_until);
    }

    /// It is `now`: hints that end by then are over.
    pub fn advance(&mut self, now: Millis) {
        self.pool.advance(now);
    }

    /// Keeps what `session` owns until `until`; says whether anything is known of the session.
    pub fn keep(&mut self, session: &str, until: Millis) -> bool {
        self.pool.keep(session, until)
    }

    /// What `session` owns goes first from now on; says whether anything is known of the session.
    pub fn release(&mut self, session: &str) -> bool {
        self.pool.release(session)
    }

    /// Above so many idle blocks kept by hints, the longest unused of them compete with plain ones.
    pub fn set_kept_max(&mut self, blocks: usize) {
        self.pool.set_kept_max(blocks);
    }

    /// Leases `blocks` blocks that begin with those of `hit`, or nothing when that would leave fewer than `spare`
    /// available. An idle block of `hit` takes room too: once held it is no longer free for anyone.
    pub(crate) fn admit(
        &mut self,
        hit: &[BlockId],
        blocks: usize,
        spare: usize,
        owner: OwnerId,
    ) -> Option<Lease> {
        let idle = hit
            .iter()
            .filter(|&&block| self.pool.refs(block) == 0)
            .count();
        if blocks.saturating_sub(hit.len()) + idle + spare > self.pool.available() {
            return None;
        }
        hit.iter()
            .for_each(|&block| self.pool.hold_for(block, owner));
        let mut lease = Lease {
            blocks: hit.to_vec(),
            published: hit.len(),
            owner,
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
    /// and since every sequence then holds the listed blocks of its whole prefix, what builds on an idle block is idle.
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
                Published::New => {
                    let parent = index.checked_sub(1).map(|before| lease.blocks[before]);
                    self.pool
                        .mark_cached_for(lease.blocks[index], parent, lease.owner);
                }
                Published::Same(twin) => {
                    self.pool.hold_for(twin, lease.owner);
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
