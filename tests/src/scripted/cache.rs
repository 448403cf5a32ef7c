//! A prefix cache as engines have it: whole blocks, found by everything before them, the longest unused going first.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hasher as _},
};

/// Tokens of one block.
pub const BLOCK_TOKENS: u64 = 64;
/// Bytes of text that make one token.
pub const BYTES_PER_TOKEN: u64 = 4;
const BLOCK_BYTES: usize = (BLOCK_TOKENS * BYTES_PER_TOKEN) as usize;

/// The blocks that one replica holds.
#[derive(Debug)]
pub(super) struct Cache {
    blocks_max: usize,
    now: u64,
    used: HashMap<u64, u64>,
    by_use: BTreeMap<u64, u64>,
}

impl Cache {
    /// An empty cache with room for `blocks_max` blocks.
    pub(super) fn new(blocks_max: usize) -> Self {
        Self {
            blocks_max,
            now: 0,
            used: HashMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.used.clear();
        self.by_use.clear();
    }

    /// Tokens of `prompt`, and how many of them were here; all of its whole blocks are here afterwards, as far as there is room.
    /// The last token is always computed, since its logits are needed.
    pub(super) fn visit(&mut self, prompt: &[u8]) -> (u64, u64) {
        let tokens = prompt.len() as u64 / BYTES_PER_TOKEN;
        let keys = keys(prompt);
        let held = keys.iter().take_while(|key| self.used.contains_key(key));
        let cached = (held.count() as u64 * BLOCK_TOKENS).min(tokens.saturating_sub(1));
        // Back to front, so that of one prompt the end goes first: a block without those before it is of no use.
        for key in keys.iter().take(self.blocks_max).rev() {
            self.touch(*key);
        }
        while self.used.len() > self.blocks_max {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                break;
            };
            self.used.remove(&oldest);
        }
        (tokens, cached / BLOCK_TOKENS * BLOCK_TOKENS)
    }

    fn touch(&mut self, key: u64) {
        self.now += 1;
        if let Some(before) = self.used.insert(key, self.now) {
            self.by_use.remove(&before);
        }
        self.by_use.insert(self.now, key);
    }
}

/// The key of each whole block, over it and all before it.
fn keys(prompt: &[u8]) -> Vec<u64> {
    let mut key = 0;
    prompt
        .chunks_exact(BLOCK_BYTES)
        .map(|block| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(key);
            hasher.write(block);
            key = hasher.finish();
            key
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BYTES, BLOCK_TOKENS, Cache};

    /// Visits in order: each letter of a prompt is one block of that letter; with it, blocks that must be cached.
    #[track_caller]
    fn check(blocks_max: usize, visits: &[(&str, u64)]) {
        let mut cache = Cache::new(blocks_max);
        for (prompt, expect) in visits {
            let text: Vec<u8> = prompt.bytes().flat_map(|b| [b; BLOCK_BYTES]).collect();
            let (tokens, cached) = cache.visit(&text);
            assert_eq!(tokens, prompt.len() as u64 * BLOCK_TOKENS);
            assert_eq!(cached, expect * BLOCK_TOKENS, "{prompt} of {visits:?}");
            assert!(cache.used.len() <= blocks_max);
            assert_eq!(cache.used.len(), cache.by_use.len());
        }
    }

    #[test]
    fn a_prompt_finds_the_blocks_that_it_begins_with() {
        check(9, &[("abc", 0), ("abcd", 3), ("abxd", 2), ("bcd", 0)]);
    }

    #[test]
    fn the_last_token_is_always_computed() {
        check(9, &[("ab", 0), ("ab", 1), ("", 0)]);
    }

    #[test]
    fn the_longest_unused_goes_first_and_of_one_prompt_its_end() {
        check(4, &[("abc", 0), ("de", 0), ("abc", 2)]);
        check(4, &[("ab", 0), ("cd", 0), ("abx", 2), ("cdx", 1)]);
        check(2, &[("abcd", 0), ("abcd", 2)]);
    }
}
