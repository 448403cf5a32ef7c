use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;
use crate::block_key::BlockKey;
use crate::eviction::NOBODY;

/// A digest of two bits, under which most blocks collide.
fn two_bits(bytes: &[u8]) -> BlockKey {
    let mut key = [0; 32];
    key[0] = Sha256::digest(bytes)[0] & 3;
    BlockKey(key)
}

/// A cache together with what each block really holds: the whole prefix up to its end, and the salt.
struct Model {
    cache: KvCache,
    content: BTreeMap<BlockId, (Option<Arc<str>>, Vec<u32>)>,
}

/// A sequence that was computed.
struct Computed {
    lease: Lease,
    chain: KeyChain,
    tokens: Vec<u32>,
}

impl Model {
    fn new(capacity: usize, maker: KeyMaker) -> Self {
        Self {
            cache: KvCache::new(capacity, maker, true),
            content: BTreeMap::new(),
        }
    }

    /// Admits `tokens`, checks that what was found is what the blocks hold, computes the rest, and says how many
    /// tokens were reused; `None` without room.
    fn run(&mut self, salt: Option<&str>, tokens: &[u32]) -> Option<(usize, Computed)> {
        let salt: Option<Arc<str>> = salt.map(Arc::from);
        let mut chain = KeyChain::new(salt.clone());
        let hit = self.cache.find(&mut chain, tokens);
        for (i, block) in hit.iter().enumerate() {
            let held = (salt.clone(), tokens[..(i + 1) * BLOCK_TOKENS].to_vec());
            assert_eq!(
                self.content[block], held,
                "a block with other content was reused"
            );
        }
        let reused = hit.len() * BLOCK_TOKENS;
        assert!(reused < tokens.len(), "the last token must be computed");
        let lease = self
            .cache
            .admit(&hit, blocks_for(tokens.len()), 0, NOBODY)?;
        let mut run = Computed {
            lease,
            chain,
            tokens: tokens.to_vec(),
        };
        self.compute(&mut run, reused);
        Some((reused, run))
    }

    /// Writes the KV of all tokens from `from` on and publishes it.
    fn compute(&mut self, run: &mut Computed, from: usize) {
        for (i, &block) in run
            .lease
            .blocks()
            .iter()
            .enumerate()
            .skip(from / BLOCK_TOKENS)
        {
            assert_eq!(
                self.cache.pool().refs(block),
                1,
                "a shared block was written"
            );
            let end = run.tokens.len().min((i + 1) * BLOCK_TOKENS);
            self.content.insert(
                block,
                (run.chain.salt().cloned(), run.tokens[..end].to_vec()),
            );
        }
        let Computed {
            lease,
            chain,
            tokens,
        } = run;
        self.cache.publish(lease, chain, tokens, tokens.len());
    }
}

fn tokens(n: usize) -> Vec<u32> {
    (0..n as u32).collect()
}

/// Runs `prompts` one after the other, each given back before the next, and compares the tokens that each reused.
#[track_caller]
fn check(prompts: &[(Option<&str>, Vec<u32>)], reused: &[usize]) {
    let mut model = Model::new(16, KeyMaker::new("m"));
    let got: Vec<_> = prompts
        .iter()
        .map(|(salt, tokens)| {
            let (reused, run) = model.run(*salt, tokens).unwrap();
            model.cache.give_back(run.lease);
            model.cache.check_invariants();
            reused
        })
        .collect();
    assert_eq!(got, reused);
}

#[test]
fn only_full_blocks_and_at_most_all_tokens_but_the_last_are_reused() {
    check(&[(None, tokens(40)), (None, tokens(40))], &[0, 32]);
    check(&[(None, tokens(48)), (None, tokens(48))], &[0, 32]);
    check(&[(None, tokens(48)), (None, tokens(49))], &[0, 48]);
    check(&[(None, tokens(15)), (None, tokens(17))], &[0, 0]);
    check(
        &[(None, tokens(16)), (None, tokens(16)), (None, tokens(17))],
        &[0, 0, 16],
    );
    check(&[(None, tokens(1)), (None, tokens(1))], &[0, 0]);
}

#[test]
fn a_prefix_is_reused_up_to_the_first_block_that_differs() {
    let mut other = tokens(64);
    other[40] = 7;
    check(&[(None, tokens(64)), (None, other)], &[0, 32]);
}

/// The same prompt under two salts shares nothing; under an equal salt it does.
#[test]
fn a_salt_keeps_tenants_apart() {
    let prompts = [
        (Some("a"), tokens(40)),
        (Some("b"), tokens(40)),
        (None, tokens(40)),
        (Some(""), tokens(40)),
        (Some("a"), tokens(40)),
        (None, tokens(40)),
    ];
    check(&prompts, &[0, 0, 0, 0, 32, 32]);
}

#[test]
fn two_sequences_that_computed_the_same_keep_one_copy() {
    let mut model = Model::new(8, KeyMaker::new("m"));
    let mut chains = [KeyChain::new(None), KeyChain::new(None)];
    let text = tokens(33);
    let mut leases = [
        model.cache.admit(&[], 3, 0, NOBODY).unwrap(),
        model.cache.admit(&[], 3, 0, NOBODY).unwrap(),
    ];
    assert_eq!(model.cache.pool().leased(), 6);
    for (lease, chain) in leases.iter_mut().zip(&mut chains) {
        model.cache.publish(lease, chain, &text, 33);
        model.cache.check_invariants();
    }
    assert_eq!(model.cache.pool().leased(), 4);
    assert_eq!(leases[0].blocks()[..2], leases[1].blocks()[..2]);
    assert_ne!(leases[0].blocks()[2], leases[1].blocks()[2]);
    leases
        .into_iter()
        .for_each(|lease| model.cache.give_back(lease));
    assert_eq!(model.cache.pool().leased(), 0);
}

#[test]
fn an_idle_hit_takes_room_from_the_rest_of_its_own_sequence() {
    let mut model = Model::new(4, KeyMaker::new("m"));
    let (_, run) = model.run(None, &tokens(40)).unwrap();
    model.cache.give_back(run.lease);
    let (_, other) = model.run(Some("a"), &tokens(1)).unwrap();
    // Three blocks are available, but two of them are the hit itself: only one is left for the other two blocks.
    assert_eq!(model.cache.pool().available(), 3);
    assert!(model.run(None, &tokens(64)).is_none());
    assert_eq!(model.cache.pool().leased(), 1);
    model.cache.give_back(other.lease);
    let (reused, run) = model.run(None, &tokens(64)).unwrap();
    assert_eq!(reused, 32);
    model.cache.give_back(run.lease);
}

#[test]
fn after_a_reset_nothing_computed_before_is_reused() {
    let mut model = Model::new(8, KeyMaker::new("m"));
    let (_, idle) = model.run(None, &tokens(40)).unwrap();
    let (_, mut running) = model.run(Some("a"), &tokens(40)).unwrap();
    model.cache.give_back(idle.lease);
    model.cache.forget_all();
    running.lease.make_private();
    running.tokens.extend(tokens(20));
    assert!(model.cache.grow(&mut running.lease, 4));
    model
        .cache
        .publish(&mut running.lease, &mut running.chain, &running.tokens, 60);
    model.cache.check_invariants();
    model.cache.give_back(running.lease);
    model.cache.check_invariants();
    let (reused, run) = model.run(Some("a"), &tokens(40)).unwrap();
    assert_eq!(reused, 0);
    model.cache.give_back(run.lease);
}

#[derive(Clone, Debug)]
struct Prompt {
    salt: Option<bool>,
    /// One letter a block, so that prefixes often agree.
    blocks: Vec<u32>,
    tail: usize,
}

impl Prompt {
    fn tokens(&self) -> Vec<u32> {
        let mut tokens: Vec<u32> = self
            .blocks
            .iter()
            .flat_map(|&letter| [letter; BLOCK_TOKENS])
            .collect();
        tokens.extend(std::iter::repeat_n(9, self.tail));
        tokens
    }
}

fn prompts() -> impl Strategy<Value = Vec<(Prompt, u8)>> {
    let prompt = (
        prop::option::of(any::<bool>()),
        prop::collection::vec(0..2u32, 0..5),
        1..18usize,
    )
        .prop_map(|(salt, blocks, tail)| Prompt { salt, blocks, tail });
    prop::collection::vec((prompt, any::<u8>()), 1..40)
}

/// Runs and gives back sequences at random; `Model::run` compares what is reused with what the blocks hold.
fn churn(capacity: usize, maker: KeyMaker, prompts: Vec<(Prompt, u8)>) {
    let mut model = Model::new(capacity, maker);
    let mut held: Vec<Computed> = Vec::new();
    for (prompt, chance) in prompts {
        let salt = prompt.salt.map(|s| if s { "a" } else { "b" });
        if let Some((_, run)) = model.run(salt, &prompt.tokens()) {
            held.push(run);
        }
        model.cache.check_invariants();
        if chance & 1 == 0 && !held.is_empty() {
            let mut grown = held.swap_remove(usize::from(chance) % held.len());
            let from = grown.tokens.len();
            grown.tokens.extend([0; BLOCK_TOKENS]);
            if model
                .cache
                .grow(&mut grown.lease, blocks_for(grown.tokens.len()))
            {
                model.compute(&mut grown, from);
            }
            model.cache.give_back(grown.lease);
        }
        if chance & 6 == 0 {
            held.drain(..)
                .for_each(|run| model.cache.give_back(run.lease));
        }
        model.cache.check_invariants();
    }
    held.into_iter()
        .for_each(|run| model.cache.give_back(run.lease));
    assert_eq!(model.cache.pool().leased(), 0);
}

proptest! {
    #[test]
    fn what_is_reused_is_what_was_asked_for(prompts in prompts(), capacity in 1..20usize) {
        churn(capacity, KeyMaker::new("m"), prompts);
    }

    #[test]
    fn with_two_bit_keys_too(prompts in prompts(), capacity in 1..20usize) {
        churn(capacity, KeyMaker::with_digest("m", two_bits), prompts);
    }
}
