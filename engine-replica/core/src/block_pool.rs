//! KV blocks: who holds how many references, and which block is reused next.
//!
//! A block nobody holds waits in one doubly linked queue. Those without content stand at the front, the last freed
//! first; those whose content can still be reused stand behind them, the longest unused first. A sequence's blocks
//! come back tail first, so that the end of a prefix is reused before its beginning.

/// A block's number, from 0 to the capacity.
pub type BlockId = u32;

const NIL: BlockId = BlockId::MAX;

/// What the pool knows of one block.
#[derive(Clone, Debug)]
struct Slot {
    /// Leases that hold it. In the queue exactly when this is 0.
    refs: u32,
    /// The prefix index lists its content.
    cached: bool,
    prev: BlockId,
    next: BlockId,
}

/// Invariant: `free + leased + cached == capacity`. Checked by `check_invariants` after every property step.
#[derive(Debug)]
pub struct BlockPool {
    slots: Vec<Slot>,
    head: BlockId,
    tail: BlockId,
    /// In the queue, without content.
    free: usize,
    /// In the queue, with content.
    cached: usize,
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
    /// A pool of `capacity` free blocks, given out from number 0.
    pub fn new(capacity: usize) -> Self {
        let slot = Slot {
            refs: 0,
            cached: false,
            prev: NIL,
            next: NIL,
        };
        let slots = vec![slot; capacity];
        let mut pool = Self {
            slots,
            head: NIL,
            tail: NIL,
            free: 0,
            cached: 0,
        };
        for block in 0..capacity as BlockId {
            pool.push_back(block);
        }
        pool.free = capacity;
        pool
    }

    /// Blocks in all.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Blocks that `take` could give out, cached content among them.
    pub fn available(&self) -> usize {
        self.free + self.cached
    }

    /// Blocks that nobody holds and whose content can be reused.
    pub fn cached(&self) -> usize {
        self.cached
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
        self.slots[block as usize].cached
    }

    /// Gives out the next block to reuse, or nothing when all are held.
    pub fn take(&mut self) -> Option<Taken> {
        let block = self.head;
        if block == NIL {
            return None;
        }
        let evicted = self.slots[block as usize].cached;
        self.hold(block);
        self.slots[block as usize].cached = false;
        Some(Taken { block, evicted })
    }

    /// Holds `block` once more: an idle one leaves the queue and keeps its content.
    pub fn hold(&mut self, block: BlockId) {
        if self.slots[block as usize].refs == 0 {
            self.unlink(block);
            *self.idle_count(block) -= 1;
        }
        self.slots[block as usize].refs += 1;
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
            if slot.refs == 0 && slot.cached {
                self.push_back(block);
                self.cached += 1;
            }
        }
        for &block in table {
            let slot = &self.slots[block as usize];
            if slot.refs == 0 && !slot.cached {
                self.push_front(block);
                self.free += 1;
            }
        }
    }

    /// The prefix index has begun to list the content of `block`, which somebody holds.
    pub fn mark_cached(&mut self, block: BlockId) {
        let slot = &mut self.slots[block as usize];
        assert!(slot.refs > 0, "block {block} is published by nobody");
        slot.cached = true;
    }

    /// The prefix index lists nothing any more: all idle blocks become free.
    pub fn forget_contents(&mut self) {
        for slot in &mut self.slots {
            slot.cached = false;
        }
        self.free += self.cached;
        self.cached = 0;
    }

    /// Panics unless the queue, the counts and the references agree. For tests.
    pub fn check_invariants(&self) {
        let mut queued = vec![false; self.capacity()];
        let (mut free, mut cached, mut prev) = (0, 0, NIL);
        let mut block = self.head;
        while block != NIL {
            let slot = &self.slots[block as usize];
            assert!(!queued[block as usize], "block {block} is queued twice");
            assert_eq!(
                slot.prev, prev,
                "the queue's links disagree at block {block}"
            );
            assert_eq!(slot.refs, 0, "block {block} is held and queued");
            assert!(
                slot.cached || cached == 0,
                "free block {block} waits behind cached ones"
            );
            queued[block as usize] = true;
            *(if slot.cached { &mut cached } else { &mut free }) += 1;
            (prev, block) = (block, slot.next);
        }
        assert_eq!((self.tail, self.free, self.cached), (prev, free, cached));
        let leased = self.slots.iter().filter(|slot| slot.refs > 0).count();
        assert_eq!(
            free + leased + cached,
            self.capacity(),
            "a block is neither held nor queued"
        );
    }

    fn idle_count(&mut self, block: BlockId) -> &mut usize {
        if self.slots[block as usize].cached {
            &mut self.cached
        } else {
            &mut self.free
        }
    }

    fn unlink(&mut self, block: BlockId) {
        let Slot { prev, next, .. } = self.slots[block as usize];
        match prev {
            NIL => self.head = next,
            prev => self.slots[prev as usize].next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => self.slots[next as usize].prev = prev,
        }
    }

    fn push_front(&mut self, block: BlockId) {
        let next = std::mem::replace(&mut self.head, block);
        let slot = &mut self.slots[block as usize];
        (slot.prev, slot.next) = (NIL, next);
        match next {
            NIL => self.tail = block,
            next => self.slots[next as usize].prev = block,
        }
    }

    fn push_back(&mut self, block: BlockId) {
        let prev = std::mem::replace(&mut self.tail, block);
        let slot = &mut self.slots[block as usize];
        (slot.prev, slot.next) = (prev, NIL);
        match prev {
            NIL => self.head = block,
            prev => self.slots[prev as usize].next = block,
        }
    }
}

#[cfg(test)]
mod tests;
