//! What each replica is believed to hold: what the gateway has sent there, as long as a cache of that size would keep it.

use std::collections::HashMap;

use super::block::{Block, BlockHash};
use super::lru::Lru;

/// Replicas that are tracked at once. One bit for each in every block's set, so that one look-up a block serves all replicas.
pub const REPLICAS_MAX: usize = 256;

const WORDS: usize = REPLICAS_MAX / 64;

/// A set of replicas, by slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slots([u64; WORDS]);

impl Slots {
    fn first(count: usize) -> Self {
        let mut all = Self::default();
        for slot in 0..count {
            all.set(slot, true);
        }
        all
    }

    fn set(&mut self, slot: usize, member: bool) {
        let bit = 1 << (slot % 64);
        match member {
            true => self.0[slot / 64] |= bit,
            false => self.0[slot / 64] &= !bit,
        }
    }

    fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// Keeps the members that `others` has too; calls `lost` with each that goes.
    fn keep(&mut self, others: &Self, mut lost: impl FnMut(usize)) {
        for (word, (mine, theirs)) in self.0.iter_mut().zip(&others.0).enumerate() {
            let mut gone = *mine & !theirs;
            *mine &= theirs;
            while gone != 0 {
                lost(word * 64 + gone.trailing_zeros() as usize);
                gone &= gone - 1;
            }
        }
    }
}

/// One LRU set per replica slot, and over all of them which slots hold a block.
///
/// Invariant: `holders` has a block exactly where some slot's set has it, with exactly those slots. Memory is bounded by the sum of the
/// capacities.
#[derive(Clone, Debug, Default)]
pub(super) struct Beliefs {
    caches: Vec<Lru>,
    holders: HashMap<u64, Slots, BlockHash>,
}

impl Beliefs {
    /// Makes sure of `slot` (below [`REPLICAS_MAX`]) and gives it a capacity in tokens; what it held beyond is forgotten.
    pub(super) fn size(&mut self, slot: usize, capacity: u64) {
        while self.caches.len() <= slot {
            self.caches.push(Lru::new(0));
        }
        let holders = &mut self.holders;
        self.caches[slot].resize(capacity, |key, came| note(holders, slot, key, came));
    }

    /// The replica in `slot` holds `blocks` now. Tells `held` which of them it held before, with the number of their last use, and gives
    /// the number of this use.
    pub(super) fn insert(
        &mut self,
        slot: usize,
        blocks: &[Block],
        held: impl FnMut(usize, u64),
    ) -> u64 {
        let holders = &mut self.holders;
        self.caches[slot].insert_telling(blocks, held, |key, came| note(holders, slot, key, came))
    }

    /// How many leading blocks of `blocks` the slot other than `slot` holds that holds most, where it is more than `here`, and else `here`.
    /// One look-up where it is not: a session that returns has its end nowhere.
    pub(super) fn most_beside(&self, slot: usize, blocks: &[Block], here: usize) -> usize {
        let next = blocks.get(here);
        let mut holders = next.and_then(|next| self.holders.get(&next.key).copied());
        if let Some(holders) = &mut holders {
            holders.set(slot, false);
        }
        if holders.is_none_or(|holders| holders.is_empty()) {
            return here;
        }
        let held = self.held(blocks).into_iter().enumerate();
        let others = held.filter(|(other, _)| *other != slot);
        others.map(|(_, held)| held).max().unwrap_or(0).max(here)
    }

    /// The replica in `slot` was found to lack a block that was last used at `used`: an engine drops what was used longest ago
    /// first, so it lacks all that was not used since.
    pub(super) fn forget_until(&mut self, slot: usize, used: u64) {
        let holders = &mut self.holders;
        self.caches[slot].forget_until(used, |key, came| note(holders, slot, key, came));
    }

    /// What came with the use `used` of `blocks` did not come after all.
    pub(super) fn take_back(&mut self, slot: usize, blocks: &[Block], used: u64) {
        let holders = &mut self.holders;
        self.caches[slot].take_back(blocks, used, |key, came| note(holders, slot, key, came));
    }

    /// Tokens believed to be held in `slot`, and tokens that it has room for.
    pub(super) fn filled(&self, slot: usize) -> (u64, u64) {
        (self.caches[slot].tokens(), self.caches[slot].capacity())
    }

    /// How many leading blocks of `blocks` each slot holds. One look-up a block, whatever the number of slots.
    pub(super) fn held(&self, blocks: &[Block]) -> Vec<usize> {
        let mut held = vec![blocks.len(); self.caches.len()];
        let mut still = Slots::first(self.caches.len());
        for (depth, block) in blocks.iter().enumerate() {
            let holders = self.holders.get(&block.key).copied().unwrap_or_default();
            still.keep(&holders, |slot| held[slot] = depth);
            if still.is_empty() {
                break;
            }
        }
        held
    }
}

fn note(holders: &mut HashMap<u64, Slots, BlockHash>, slot: usize, key: u64, came: bool) {
    let slots = holders.entry(key).or_default();
    slots.set(slot, came);
    if slots.is_empty() {
        holders.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prompt(keys: &[u64]) -> Vec<Block> {
        let block = |&key| Block { key, tokens: 1 };
        keys.iter().map(block).collect()
    }

    proptest! {
        // Few keys and few slots, so that sharing, eviction and resizing all meet.
        #[test]
        fn the_shared_index_agrees_with_each_replicas_own_set(
            steps in prop::collection::vec((0usize..3, prop::collection::vec(0u64..8, 1..5), 0u64..6), 1..40),
            ask in prop::collection::vec(0u64..8, 0..6),
        ) {
            let mut beliefs = Beliefs::default();
            (0..3).for_each(|slot| beliefs.size(slot, 4));
            let mut plain = vec![Lru::new(4); 3];
            for (slot, keys, size) in steps {
                let mut had = Vec::new();
                beliefs.insert(slot, &prompt(&keys), |place, _| had.push(place));
                had.reverse();
                // A block that stands twice is held from its first insertion on.
                let new = |place: usize| keys[place + 1..].contains(&keys[place]);
                let expect: Vec<usize> = (0..keys.len())
                    .filter(|&place| new(place) || plain[slot].held_tokens(&prompt(&keys[place..=place])) > 0)
                    .collect();
                prop_assert_eq!(had, expect);
                plain[slot].insert(&prompt(&keys), |_, _| ());
                if size > 0 {
                    beliefs.size(slot, size);
                    plain[slot].resize(size, |_, _| ());
                }
                let ask = prompt(&ask);
                let held: Vec<u64> = beliefs.held(&ask).iter().map(|&n| n as u64).collect();
                let expect: Vec<u64> = plain.iter().map(|cache| cache.held_tokens(&ask)).collect();
                prop_assert_eq!(&held, &expect);
                for slot in 0..3 {
                    let beside = (0..3).filter(|other| *other != slot).map(|other| held[other]).max();
                    for here in 0..=ask.len() {
                        let most = beliefs.most_beside(slot, &ask, here) as u64;
                        prop_assert_eq!(most, beside.unwrap_or(0).max(here as u64));
                    }
                }
            }
            (0..3).for_each(|slot| beliefs.size(slot, 0));
            prop_assert!(beliefs.holders.is_empty(), "nothing is left behind");
        }
    }
}
