//! Which blocks many conversations begin with: a shared system prompt, a template.
//!
//! Such a block will be on every replica soon, so lacking it must not cost a replica its share of new conversations; else all sessions
//! herd to the one that served the prompt first. Only *new conversations* are counted: a lone session of a hundred turns makes its own
//! blocks frequent, but not common.

use std::collections::HashMap;

use super::block::{Block, BlockHash};

/// New conversations in one count; shares are over the running count and the one before it.
pub const COUNT_CONVERSATIONS: u32 = 256;
/// Different blocks in one count at most, about 16 bytes each; further ones wait for the next count.
pub const COUNT_BLOCKS_MAX: usize = 1 << 18;
/// A block in fewer conversations than this is nobody's shared prompt, however few conversations there are.
const CONVERSATIONS_MIN: u32 = 3;

#[derive(Clone, Debug, Default)]
struct Count {
    conversations: u32,
    blocks: HashMap<u64, u32, BlockHash>,
}

/// The last few hundred new conversations, block by block.
#[derive(Clone, Debug, Default)]
pub(super) struct Common {
    now: Count,
    before: Count,
}

impl Common {
    /// Counts one new conversation.
    pub(super) fn add(&mut self, blocks: &[Block]) {
        if self.now.conversations == COUNT_CONVERSATIONS {
            self.before = std::mem::take(&mut self.now);
        }
        self.now.conversations += 1;
        for block in blocks {
            if let Some(count) = self.now.blocks.get_mut(&block.key) {
                *count += 1;
            } else if self.now.blocks.len() < COUNT_BLOCKS_MAX {
                self.now.blocks.insert(block.key, 1);
            }
        }
    }

    /// The share of recent new conversations that `key` is in, 0 to 1; 0 where they are too few to tell.
    pub(super) fn share(&self, key: u64) -> f64 {
        let count = |count: &Count| count.blocks.get(&key).copied().unwrap_or(0);
        let carried = count(&self.now) + count(&self.before);
        if carried < CONVERSATIONS_MIN {
            return 0.0;
        }
        f64::from(carried) / f64::from(self.now.conversations + self.before.conversations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Conversations that begin with block 1 at each place where `shared` says so, after which block 1 has the share `expect`.
    #[track_caller]
    fn check(shared: impl IntoIterator<Item = bool>, expect: f64) {
        let mut common = Common::default();
        for (place, shared) in shared.into_iter().enumerate() {
            let own = Block {
                key: 100 + place as u64,
                tokens: 1,
            };
            let first = Block { key: 1, tokens: 1 };
            let both = [first, own];
            common.add(if shared { &both } else { &both[1..] });
            assert!(common.now.blocks.len() + common.before.blocks.len() <= 2 * COUNT_BLOCKS_MAX);
        }
        let share = common.share(1);
        assert!((share - expect).abs() < 1e-9, "{share} is not {expect}");
    }

    #[test]
    fn a_block_is_as_common_as_its_share_of_new_conversations() {
        check([], 0.0);
        check([true, true], 0.0); // two are too few
        check([true, true, true], 1.0);
        check([true, false, true, false, true, false], 0.5);
    }

    #[test]
    fn what_was_common_long_ago_is_not() {
        let count = COUNT_CONVERSATIONS as usize;
        check((0..3 * count).map(|place| place < count), 0.0);
    }
}
