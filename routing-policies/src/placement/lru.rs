//! An exact least-recently-used set of blocks, as an engine's prefix cache keeps it.

use std::collections::HashMap;

use super::block::{Block, BlockHash};

const NONE: u32 = u32::MAX;

/// A bounded set of blocks; what was used longest ago goes first, and within one prompt the deepest block goes first.
///
/// Invariant: `slots` holds exactly the blocks of `place`, chained from `newest` to `oldest`, and `free` the rest; `tokens` is the sum
/// of theirs and at most `capacity`.
#[derive(Clone, Debug)]
pub struct Lru {
    capacity: u64,
    tokens: u64,
    place: HashMap<u64, u32, BlockHash>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    block: Block,
    /// The number of its last use: never falls from the oldest to the newest.
    used: u64,
    newer: u32,
    older: u32,
}

impl Lru {
    /// An empty set that holds blocks of at most `capacity` tokens together.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            tokens: 0,
            place: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            uses: 0,
        }
    }

    /// How many blocks it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.place.len()
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    /// Tokens of all that it holds.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Tokens that it has room for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Tokens of the leading run of `blocks` that it holds. Looking is not using: the order stays.
    #[must_use]
    pub fn held_tokens(&self, blocks: &[Block]) -> u64 {
        blocks
            .iter()
            .take_while(|block| self.place.contains_key(&block.key))
            .map(|block| u64::from(block.tokens))
            .sum()
    }

    /// Uses `blocks`, deepest first, so that the root is the newest; then drops the oldest down to the capacity and tells
    /// `changed` the key of each block that came (`true`) or went (`false`). Gives the number of this use.
    pub fn insert(&mut self, blocks: &[Block], changed: impl FnMut(u64, bool)) -> u64 {
        self.insert_telling(blocks, |_, _| (), changed)
    }

    /// [`Self::insert`], which also tells `held` the place of each block that it held before, with the number of its last use: one look-up
    /// for both.
    pub(super) fn insert_telling(
        &mut self,
        blocks: &[Block],
        mut held: impl FnMut(usize, u64),
        mut changed: impl FnMut(u64, bool),
    ) -> u64 {
        self.uses += 1;
        for (place, &block) in blocks.iter().enumerate().rev() {
            if let Some(&slot) = self.place.get(&block.key) {
                held(place, self.slots[slot as usize].used);
                self.slots[slot as usize].used = self.uses;
                self.unlink(slot);
                self.link(slot);
                continue;
            }
            let slot = self.take_slot(block);
            self.place.insert(block.key, slot);
            self.tokens += u64::from(block.tokens);
            self.link(slot);
            changed(block.key, true);
        }
        self.trim(&mut changed);
        self.uses
    }

    /// Drops what was last used at `used` or before: where a block of that use has gone from a cache, so has all that was older.
    pub fn forget_until(&mut self, used: u64, mut changed: impl FnMut(u64, bool)) {
        while self.oldest != NONE && self.slots[self.oldest as usize].used <= used {
            self.drop_slot(self.oldest, &mut changed);
        }
    }

    /// Drops those of `blocks` whose last use was `used`, as if that use had not been.
    pub fn take_back(&mut self, blocks: &[Block], used: u64, mut changed: impl FnMut(u64, bool)) {
        for block in blocks {
            let slot = self.place.get(&block.key).copied();
            if let Some(slot) = slot.filter(|slot| self.slots[*slot as usize].used == used) {
                self.drop_slot(slot, &mut changed);
            }
        }
    }

    /// Changes the capacity, in tokens, and drops the oldest down to it.
    pub fn resize(&mut self, capacity: u64, mut changed: impl FnMut(u64, bool)) {
        self.capacity = capacity;
        self.trim(&mut changed);
    }

    fn trim(&mut self, changed: &mut impl FnMut(u64, bool)) {
        while self.tokens > self.capacity {
            self.drop_slot(self.oldest, changed);
        }
    }

    fn drop_slot(&mut self, slot: u32, changed: &mut impl FnMut(u64, bool)) {
        let Block { key, tokens } = self.slots[slot as usize].block;
        self.unlink(slot);
        self.place.remove(&key);
        self.free.push(slot);
        self.tokens -= u64::from(tokens);
        changed(key, false);
    }

    fn take_slot(&mut self, block: Block) -> u32 {
        let empty = Slot {
            block,
            used: self.uses,
            newer: NONE,
            older: NONE,
        };
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = empty;
            return slot;
        }
        self.slots.push(empty);
        (self.slots.len() - 1) as u32
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
    }

    fn link(&mut self, slot: u32) {
        self.slots[slot as usize].newer = NONE;
        self.slots[slot as usize].older = self.newest;
        match self.newest {
            NONE => self.oldest = slot,
            newest => self.slots[newest as usize].newer = slot,
        }
        self.newest = slot;
    }
}

#[cfg(test)]
mod tests;
