//! KV blocks: who holds how many references, and which block is reused next.
//!
//! A block nobody holds and without content is reused first, the last freed before the others. Those whose content can
//! still be reused go in the order of `eviction`, leaves only, so that the end of a prefix goes before its beginning.

use crate::eviction::{Eviction, Millis, NOBODY, OwnerId, STANDINGS, SessionKey};

/// A block's number, from 0 to the capacity.
pub type BlockId = u32;

/// What the pool knows of one block.
#[derive(Clone, Debug)]
struct Slot {
    /// Leases that hold it.
    refs: u32,
    /// What the prefix index lists of it.
    content: Option<Content>,
    /// When it was last given back, on the pool's own count.
    used: u64,
}

/// A block's place among those that can be reused.
#[derive(Clone, Copy, Debug)]
struct Content {
    /// The block before it in its prefix.
    parent: Option<BlockId>,
    /// Blocks whose parent it is.
    children: u32,
    owner: OwnerId,
}

/// Invariant: `free + leased + cached == capacity`. Checked by `check_invariants` after every property step.
#[derive(Debug)]
pub struct BlockPool {
    slots: Vec<Slot>,
    /// Held by nobody, without content; the last goes first.
    free: Vec<BlockId>,
    /// Held by nobody, with content.
    cached: usize,
    eviction: Eviction,
    uses: u64,
}

/// A block that `BlockPool::take` gave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its number; one reference is held.
    pub block: BlockId,
    /// It had content, which is lost: the prefix index must forget it.
    pub evicted: bool,
}

impl BlockPool {
    /// A pool of `capacity` free blocks, given out from number 0. Hints may keep all of it.
    pub fn new(capacity: usize) -> Self {
        let slot = Slot {
            refs: 0,
            content: None,
            used: 0,
        };
        Self {
            slots: vec![slot; capacity],
            free: (0..capacity as BlockId).rev().collect(),
            cached: 0,
            eviction: Eviction::new(capacity),
            uses: 0,
        }
    }

    /// Blocks in all.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Blocks that `take` could give out, cached content among them.
    pub fn available(&self) -> usize {
        self.free.len() + self.cached
    }

    /// Blocks that nobody holds and whose content can be reused.
    pub fn cached(&self) -> usize {
        self.cached
    }

    /// Those of `cached` that a hint keeps.
    pub fn kept(&self) -> usize {
        self.eviction.kept_idle()
    }

    /// Blocks whose content was lost to others since the start, by the standing of their session then.
    pub fn evicted(&self) -> [u64; STANDINGS] {
        self.eviction.evicted()
    }

    /// Sessions that own a reusable block or have a sequence here.
    pub fn sessions(&self) -> usize {
        self.eviction.sessions()
    }

    /// Blocks that somebody holds.
    pub fn leased(&self) -> usize {
        self.capacity() - self.available()
    }

    /// Leases that hold `block`.
    pub fn refs(&self, block: BlockId) -> u32 {
        self.slots[block as usize].refs
    }

    /// Whether the prefix index lists the content of `block`.
    pub fn is_cached(&self, block: BlockId) -> bool {
        self.slots[block as usize].content.is_some()
    }

    /// Above so many idle blocks kept by hints, the longest unused of them compete with plain ones.
    pub fn set_kept_max(&mut self, blocks: usize) {
        self.eviction.set_kept_max(blocks);
    }

    /// It is `now`: hints that end by then are over.
    pub fn advance(&mut self, now: Millis) {
        self.eviction.advance(now);
    }

    /// A sequence of `session` has come.
    pub(crate) fn enter(&mut self, session: &SessionKey) -> OwnerId {
        self.eviction.enter(session)
    }

    /// A sequence that entered as `owner` is gone; its session is worth keeping until `keep_until`, if that was said.
    pub(crate) fn leave(&mut self, owner: OwnerId, keep_until: Option<Millis>) {
        self.eviction.leave(owner, keep_until);
    }

    /// Keeps what `session` owns until `until`; says whether anything is known of the session.
    pub fn keep(&mut self, session: &str, until: Millis) -> bool {
        self.eviction.keep(session, until)
    }

    /// What `session` owns goes first from now on; says whether anything is known of the session.
    pub fn release(&mut self, session: &str) -> bool {
        self.eviction.release(session)
    }

    /// Gives out the next block to reuse, or nothing when all are held.
    pub fn take(&mut self) -> Option<Taken> {
        let free = self.free.pop();
        let block = free.or_else(|| self.eviction.victim())?;
        let evicted = free.is_none();
        if evicted {
            self.evict(block);
        }
        self.slots[block as usize].refs = 1;
        Some(Taken { block, evicted })
    }

    /// Holds `block` once more for a sequence of `owner`; it is held already or has content, which it keeps. Two
    /// sessions share it from now on if it was another's.
    pub(crate) fn hold_for(&mut self, block: BlockId, owner: OwnerId) {
        let used = self.slots[block as usize].used;
        let idle = self.slots[block as usize].refs == 0;
        if let Some(content) = self.slots[block as usize].content {
            if idle {
                self.cached -= 1;
                self.eviction.set_idle(content.owner, false);
                if content.children == 0 {
                    self.eviction.remove_leaf(content.owner, used, block);
                }
            }
            if content.owner != owner && content.owner != NOBODY {
                self.eviction.gain(NOBODY);
                self.eviction.lose(content.owner);
                self.set_content(block, |content| content.owner = NOBODY);
            }
        }
        self.slots[block as usize].refs += 1;
    }

    /// As `hold_for`, for nobody's sequence.
    pub fn hold(&mut self, block: BlockId) {
        self.hold_for(block, NOBODY);
    }

    /// Gives back one reference to each block of `table`, which lists a sequence's blocks from its beginning.
    pub fn give_back(&mut self, table: &[BlockId]) {
        for &block in table.iter().rev() {
            let slot = &mut self.slots[block as usize];
            assert!(
                slot.refs > 0,
                "block {block} is given back more often than it was held"
            );
            slot.refs -= 1;
            if slot.refs == 0
                && let Some(content) = slot.content
            {
                self.uses += 1;
                slot.used = self.uses;
                self.cached += 1;
                self.eviction.set_idle(content.owner, true);
                if content.children == 0 {
                    self.eviction.add_leaf(content.owner, self.uses, block);
                }
            }
        }
        for &block in table {
            let slot = &self.slots[block as usize];
            if slot.refs == 0 && slot.content.is_none() {
                self.free.push(block);
            }
        }
    }

    /// The prefix index has begun to list the content of `block`, which somebody holds; so does it that of `parent`, the
    /// block before it, if there is one.
    pub(crate) fn mark_cached_for(
        &mut self,
        block: BlockId,
        parent: Option<BlockId>,
        owner: OwnerId,
    ) {
        let slot = &mut self.slots[block as usize];
        assert!(slot.refs > 0, "block {block} is published by nobody");
        slot.content = Some(Content {
            parent,
            children: 0,
            owner,
        });
        self.eviction.gain(owner);
        if let Some(parent) = parent {
            self.set_content(parent, |content| content.children += 1);
        }
    }

    /// As `mark_cached_for`, for nobody's sequence.
    pub fn mark_cached(&mut self, block: BlockId, parent: Option<BlockId>) {
        self.mark_cached_for(block, parent, NOBODY);
    }

    /// The prefix index lists nothing any more: all idle blocks become free.
    pub fn forget_contents(&mut self) {
        self.eviction.forget_blocks();
        for (block, slot) in self.slots.iter_mut().enumerate() {
            if slot.content.take().is_some() && slot.refs == 0 {
                self.free.push(block as BlockId);
            }
        }
        self.cached = 0;
    }

    /// Takes the content from an idle leaf; its parent may be a leaf then.
    fn evict(&mut self, block: BlockId) {
        let slot = &mut self.slots[block as usize];
        let used = slot.used;
        let Some(content) = slot.content.take() else {
            return;
        };
        self.cached -= 1;
        self.eviction.remove_leaf(content.owner, used, block);
        self.eviction.set_idle(content.owner, false);
        self.eviction.count_evicted(content.owner);
        self.eviction.lose(content.owner);
        let Some(parent) = content.parent else { return };
        self.set_content(parent, |content| content.children -= 1);
        let slot = &self.slots[parent as usize];
        if slot.refs == 0
            && let Some(Content {
                children: 0, owner, ..
            }) = slot.content
        {
            self.eviction.add_leaf(owner, slot.used, parent);
        }
    }

    fn set_content(&mut self, block: BlockId, change: impl FnOnce(&mut Content)) {
        if let Some(content) = &mut self.slots[block as usize].content {
            change(content);
        }
    }

    /// Panics unless the lists, the counts and the references agree. For tests.
    pub fn check_invariants(&self) {
        let mut free = self.free.clone();
        free.sort_unstable();
        let idle = |(block, slot): (usize, &Slot)| (slot.refs == 0).then_some(block as BlockId);
        let without = |slot: &Slot| slot.content.is_none();
        let blocks = || self.slots.iter().enumerate();
        let expected: Vec<_> = blocks()
            .filter(|(_, slot)| without(slot))
            .filter_map(idle)
            .collect();
        assert_eq!(free, expected, "the free blocks");
        let mut cached = Vec::new();
        let mut children = vec![0; self.capacity()];
        for (block, slot) in blocks() {
            let Some(content) = slot.content else {
                continue;
            };
            if let Some(parent) = content.parent {
                children[parent as usize] += 1;
                let parent = &self.slots[parent as usize];
                assert!(
                    parent.content.is_some(),
                    "block {block} outlives its parent"
                );
            }
            if slot.refs == 0 {
                cached.push((
                    content.owner,
                    slot.used,
                    block as BlockId,
                    content.children == 0,
                ));
            }
        }
        for (block, slot) in blocks() {
            let counted = slot.content.map_or(0, |content| content.children);
            assert_eq!(counted, children[block], "children of block {block}");
        }
        assert_eq!(self.cached, cached.len());
        self.eviction.check(&cached);
        let leased = self.slots.iter().filter(|slot| slot.refs > 0).count();
        assert_eq!(
            free.len() + leased + self.cached,
            self.capacity(),
            "a block is neither held nor listed"
        );
    }
}

#[cfg(test)]
mod tests;
