//! An exact least-recently-used set of blocks, as an engine's prefix cache keeps it.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::placement::BlockHasher;

const NONE: u32 = u32::MAX;

/// A bounded set of blocks; what was used longest ago goes first, and within one prompt the deepest block goes first.
///
/// Invariant: `slots` holds the blocks of `place` and nothing else, chained from `newest` to `oldest`.
#[derive(Clone, Debug)]
pub struct Lru {
    capacity: usize,
    place: HashMap<u64, u32, BuildHasherDefault<BlockHasher>>,
    slots: Vec<Slot>,
    newest: u32,
    oldest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    block: u64,
    newer: u32,
    older: u32,
}

impl Lru {
    /// An empty set that holds at most `capacity` blocks (at least one).
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.clamp(1, NONE as usize - 1),
            place: HashMap::default(),
            slots: Vec::new(),
            newest: NONE,
            oldest: NONE,
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

    /// Length of the leading run of `blocks` that it holds. Looking is not using: the order stays.
    #[must_use]
    pub fn held(&self, blocks: &[u64]) -> usize {
        blocks
            .iter()
            .take_while(|block| self.place.contains_key(block))
            .count()
    }

    /// Uses `blocks`, deepest first, so that the root is the newest; then drops the oldest down to the capacity.
    pub fn insert(&mut self, blocks: &[u64]) {
        for &block in blocks.iter().rev() {
            if let Some(&slot) = self.place.get(&block) {
                self.unlink(slot);
                self.link(slot);
                continue;
            }
            let slot = if self.place.len() == self.capacity {
                let slot = self.oldest;
                self.unlink(slot);
                self.place.remove(&self.slots[slot as usize].block);
                slot
            } else {
                self.slots.push(Slot {
                    block,
                    newer: NONE,
                    older: NONE,
                });
                (self.slots.len() - 1) as u32
            };
            self.slots[slot as usize].block = block;
            self.place.insert(block, slot);
            self.link(slot);
        }
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
