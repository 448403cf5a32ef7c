//! One sequence: its tokens, how far its KV is computed, and the blocks that hold it.

use std::sync::Arc;

use crate::block_key::KeyChain;
use crate::block_pool::BlockId;
use crate::eviction::{Millis, NOBODY, OwnerId, SessionKey};
use crate::fairness::{Flow, Priority};
use crate::lease::{KvCache, Lease, blocks_for};

/// Names a sequence. Ids are given in order of arrival.
pub type SequenceId = u64;

/// How a sequence is to be treated.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Sequences reuse each other's KV only under an equal salt.
    pub cache_salt: Option<Arc<str>>,
    /// The session whose blocks these are.
    pub session: Option<SessionKey>,
    /// How long that session's blocks are worth keeping once this sequence has ended, in milliseconds.
    pub keep_ms: Option<Millis>,
    /// Who is served; tenants share the replica fairly.
    pub tenant: Option<Arc<str>>,
    /// How urgent it is.
    pub priority: Priority,
    /// Most tokens that it will generate.
    pub output_max: usize,
}

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
    owner: OwnerId,
    keep_ms: Option<Millis>,
    flow: Flow,
    output_max: usize,
    /// Times that it gave its blocks back.
    preempted: u32,
    /// Reported to its client already, so that a resumption is not counted as a hit.
    admitted_before: bool,
}

impl Sequence {
    /// A sequence that holds nothing yet; `prompt` is not empty. Goes through `leave`.
    pub(crate) fn new(id: SequenceId, prompt: Vec<u32>, terms: Terms, kv: &mut KvCache) -> Self {
        let owner = terms.session.as_ref().map(|session| kv.enter(session));
        Self {
            id,
            prompt_len: prompt.len(),
            tokens: prompt,
            computed: 0,
            lease: Lease::default(),
            chain: KeyChain::new(terms.cache_salt),
            owner: owner.unwrap_or(NOBODY),
            keep_ms: terms.keep_ms,
            flow: (terms.tenant, terms.priority),
            output_max: terms.output_max,
            preempted: 0,
            admitted_before: false,
        }
    }

    /// Its tenant and priority.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Sorts sequences: the first goes on at the cost of the last. Each preemption raises it by one priority, and at the
    /// top the oldest goes first, so that none is preempted for ever.
    pub(crate) fn order(&self) -> (u32, SequenceId) {
        ((self.flow.1 as u32).saturating_sub(self.preempted), self.id)
    }

    /// Whether it has held blocks before.
    pub(crate) fn was_preempted(&self) -> bool {
        self.preempted > 0
    }

    /// Blocks that it will want beside those of its tokens if it generates `output` tokens more, or all it may if those are fewer.
    pub(crate) fn blocks_to_come(&self, output: usize) -> usize {
        let left = self.output_max.saturating_sub(self.output().len());
        // The last token needs no KV.
        let tokens = (self.tokens.len() + left.min(output)).saturating_sub(1);
        blocks_for(tokens).saturating_sub(blocks_for(self.tokens.len()))
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
    /// `Some(Some(..))` the first time. Room is only what leaves `spare` blocks for others.
    pub(crate) fn admit(&mut self, kv: &mut KvCache, spare: usize) -> Option<Option<Admission>> {
        let hit = kv.find(&mut self.chain, &self.tokens);
        self.lease = kv.admit(&hit, blocks_for(self.tokens.len()), spare, self.owner)?;
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
    pub(crate) fn preempt(&mut self, kv: &mut KvCache) {
        self.give_back(kv);
        self.preempted += 1;
    }

    /// Gives all blocks back for good and says how long its session's are worth keeping.
    pub(crate) fn leave(mut self, kv: &mut KvCache, now: Millis) {
        self.give_back(kv);
        if self.owner != NOBODY {
            let until = self.keep_ms.map(|keep_ms| now.saturating_add(keep_ms));
            kv.leave(self.owner, until);
        }
    }

    fn give_back(&mut self, kv: &mut KvCache) {
        self.computed = 0;
        kv.give_back(std::mem::take(&mut self.lease));
    }
}
