//! One sequence: its tokens, how far its KV is computed, and the blocks that hold it.

use std::sync::Arc;

use crate::block_key::KeyChain;
use crate::block_pool::BlockId;
use crate::lease::{KvCache, Lease, blocks_for};

/// Names a sequence. Ids are given in order of arrival, and a lower id always goes first.
pub type SequenceId = u64;

/// Tokens that a sequence found computed when it was first admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The sequence.
    pub id: SequenceId,
    /// Tokens of its prompt.
    pub prompt_tokens: usize,
    /// Those of them whose KV was reused.
    pub cached_tokens: usize,
}

/// A sequence that waits or runs. Preemption gives all of its blocks back and computes them again later, from its
/// prompt and from what it has generated so far; usually the prefix index still has them.
#[derive(Debug)]
pub struct Sequence {
    id: SequenceId,
    /// Prompt, then output.
    tokens: Vec<u32>,
    prompt_len: usize,
    /// Tokens from the first whose KV is in `lease`; always fewer than `tokens`.
    computed: usize,
    lease: Lease,
    chain: KeyChain,
    /// Reported to its client already, so that a resumption is not counted as a hit.
    admitted_before: bool,
}

impl Sequence {
    /// A sequence that holds nothing yet; `prompt` is not empty.
    pub fn new(id: SequenceId, prompt: Vec<u32>, cache_salt: Option<Arc<str>>) -> Self {
        Self {
            id,
            prompt_len: prompt.len(),
            tokens: prompt,
            computed: 0,
            lease: Lease::default(),
            chain: KeyChain::new(cache_salt),
            admitted_before: false,
        }
    }

    /// The prompt.
    pub fn prompt(&self) -> &[u32] {
        &self.tokens[..self.prompt_len]
    }

    /// What has been generated so far.
    pub fn output(&self) -> &[u32] {
        &self.tokens[self.prompt_len..]
    }

    /// Prompt and output.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Its blocks, from the first token.
    pub fn block_table(&self) -> &[BlockId] {
        self.lease.blocks()
    }

    /// Tokens from the first whose KV is there.
    pub fn computed(&self) -> usize {
        self.computed
    }

    /// Tokens whose KV is not there yet; at least 1, for the last one's logits are always wanted.
    pub fn missing(&self) -> usize {
        self.tokens.len() - self.computed
    }

    /// Leases blocks for all of its tokens, reusing the longest prefix that the cache has. `None` without room,
    /// `Some(Some(..))` the first time.
    pub(crate) fn admit(&mut self, kv: &mut KvCache) -> Option<Option<Admission>> {
        let hit = kv.find(&mut self.chain, &self.tokens);
        self.lease = kv.admit(&hit, blocks_for(self.tokens.len()))?;
        self.computed = hit.len() * crate::BLOCK_TOKENS;
        let first = !std::mem::replace(&mut self.admitted_before, true);
        Some(first.then_some(Admission {
            id: self.id,
            prompt_tokens: self.prompt_len,
            cached_tokens: self.computed,
        }))
    }

    /// Makes room for the KV of all of its tokens, or says that there is none.
    pub(crate) fn grow(&mut self, kv: &mut KvCache) -> bool {
        kv.grow(&mut self.lease, blocks_for(self.tokens.len()))
    }

    /// A step has computed its next `count` tokens.
    pub(crate) fn advance(&mut self, kv: &mut KvCache, count: usize) {
        self.computed += count;
        kv.publish(
            &mut self.lease,
            &mut self.chain,
            &self.tokens,
            self.computed,
        );
    }

    /// A step's logits have become this token.
    pub(crate) fn push(&mut self, token: u32) {
        self.tokens.push(token);
    }

    /// Keeps what it computes from now on out of the prefix index.
    pub(crate) fn make_private(&mut self) {
        self.lease.make_private();
    }

    /// Gives all blocks back, to be computed again if it goes on.
    pub(crate) fn give_back(&mut self, kv: &mut KvCache) {
        self.computed = 0;
        kv.give_back(std::mem::take(&mut self.lease));
    }
}
