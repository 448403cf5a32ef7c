use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::BLOCK_TOKENS;
use crate::block_key::{KeyChain, KeyMaker};
use crate::lease::{KvCache, blocks_for};

/// A cache whose sessions run one turn at a time.
struct Cache {
    kv: KvCache,
    now: Millis,
}

impl Cache {
    fn new(blocks: usize, kept_max: usize) -> Self {
        let mut kv = KvCache::new(blocks, KeyMaker::new("m"), true);
        kv.set_kept_max(kept_max);
        Self { kv, now: 0 }
    }

    /// Runs a turn over one block for each letter, and says how many blocks were found.
    fn turn(&mut self, session: Option<&str>, letters: &str) -> usize {
        self.turn_keeping(session, letters, None)
    }

    fn turn_keeping(
        &mut self,
        session: Option<&str>,
        letters: &str,
        keep_until: Option<Millis>,
    ) -> usize {
        let mut tokens: Vec<u32> = letters
            .bytes()
            .flat_map(|b| [u32::from(b); BLOCK_TOKENS])
            .collect();
        tokens.push(0);
        let owner = session.map_or(NOBODY, |session| self.kv.enter(&Arc::from(session)));
        let mut chain = KeyChain::new(None);
        let hit = self.kv.find(&mut chain, &tokens);
        let blocks = blocks_for(tokens.len());
        let mut lease = self.kv.admit(&hit, blocks, 0, owner).unwrap();
        self.kv
            .publish(&mut lease, &mut chain, &tokens, tokens.len());
        self.kv.give_back(lease);
        if owner != NOBODY {
            self.kv.leave(owner, keep_until);
        }
        self.kv.check_invariants();
        hit.len()
    }

    /// Blocks of `letters` that a turn would find.
    fn finds(&self, letters: &str) -> usize {
        let mut tokens: Vec<u32> = letters
            .bytes()
            .flat_map(|b| [u32::from(b); BLOCK_TOKENS])
            .collect();
        tokens.push(0);
        self.kv.find(&mut KeyChain::new(None), &tokens).len()
    }

    fn advance(&mut self, now: Millis) {
        self.now = now;
        self.kv.advance(now);
        self.kv.check_invariants();
    }
}

#[test]
fn released_goes_first_then_expired_then_plain_then_kept() {
    let mut cache = Cache::new(10, 10);
    cache.turn_keeping(Some("kept"), "KK", Some(1000));
    cache.turn(None, "PP");
    cache.turn_keeping(Some("late"), "LL", Some(10));
    cache.turn(Some("gone"), "GG");
    assert!(cache.kv.release("gone"));
    cache.advance(10);
    let left = |cache: &Cache| ["GG", "LL", "PP", "KK"].map(|letters| cache.finds(letters));
    assert_eq!(left(&cache), [2, 2, 2, 2]);
    // Each of these takes a block of its own, which is plain, and one for its tail, which is free again.
    let mut seen = Vec::new();
    for letters in ["A", "AB", "ABC", "ABCD", "ABCDE", "ABCDEF"] {
        cache.turn(None, letters);
        seen.push(left(&cache));
    }
    let expect = [
        [2, 2, 2, 2],
        [1, 2, 2, 2],
        [0, 2, 2, 2],
        [0, 1, 2, 2],
        [0, 0, 2, 2],
        [0, 0, 1, 2],
    ];
    assert_eq!(seen, expect);
}

#[test]
fn a_hint_is_no_hold() {
    let mut cache = Cache::new(4, 4);
    cache.turn_keeping(Some("a"), "AAA", Some(1000));
    assert_eq!(cache.turn(None, "BCD"), 0);
    assert_eq!(cache.finds("AAA"), 0);
}

#[test]
fn above_the_cap_kept_blocks_go_in_turn_with_plain_ones() {
    let run = |kept_max| {
        let mut cache = Cache::new(8, kept_max);
        cache.turn_keeping(Some("a"), "AAA", Some(1000));
        cache.turn(None, "BBB");
        cache.turn(None, "C");
        cache.turn(None, "CD");
        (cache.finds("AAA"), cache.finds("BBB"))
    };
    assert_eq!(run(7), (3, 2));
    assert_eq!(run(2), (2, 3));
}

#[test]
fn what_two_sessions_use_is_nobodys_and_outlives_what_builds_on_it() {
    let mut cache = Cache::new(6, 6);
    cache.turn(Some("a"), "SA");
    assert_eq!(cache.turn(Some("b"), "SB"), 1);
    cache.kv.release("a");
    cache.kv.release("b");
    cache.turn(None, "XYZ");
    assert_eq!(cache.finds("SA") + cache.finds("SB"), 3);
    cache.turn(None, "XYZV");
    assert_eq!((cache.finds("SA"), cache.finds("SB")), (1, 1));
}

#[test]
fn an_abandoned_branch_goes_before_what_its_session_goes_on_from() {
    let mut cache = Cache::new(6, 6);
    cache.turn(Some("a"), "RX");
    cache.turn_keeping(Some("a"), "RY", Some(1000));
    cache.turn(None, "CDE");
    assert_eq!((cache.finds("RX"), cache.finds("RY")), (1, 2));
}

#[test]
fn a_session_that_comes_back_is_no_longer_released() {
    let mut cache = Cache::new(5, 5);
    cache.turn(Some("a"), "A");
    cache.kv.release("a");
    cache.turn(None, "B");
    assert_eq!(cache.turn(Some("a"), "A"), 1);
    cache.turn(None, "CDE");
    assert_eq!((cache.finds("A"), cache.finds("B")), (1, 0));
}

#[test]
fn a_hint_is_about_one_pause() {
    let mut cache = Cache::new(6, 6);
    cache.turn(None, "B");
    cache.turn_keeping(Some("a"), "A", Some(10));
    assert_eq!(cache.turn(Some("a"), "A"), 1);
    assert_eq!(cache.kv.pool().kept(), 0);
    // Nothing was said of the pause since, so that nobody is late.
    cache.advance(20);
    cache.turn(None, "CDEF");
    assert_eq!((cache.finds("A"), cache.finds("B")), (1, 0));
}

#[test]
fn nothing_is_remembered_of_a_session_that_owns_nothing() {
    let mut cache = Cache::new(4, 4);
    cache.turn_keeping(Some("a"), "A", Some(1000));
    assert_eq!(cache.kv.pool().sessions(), 1);
    cache.turn(None, "BCD");
    assert_eq!(cache.kv.pool().sessions(), 0);
    assert!(!cache.kv.keep("a", 2000) && !cache.kv.release("a"));
    cache.turn_keeping(Some("a"), "A", Some(1000));
    cache.kv.forget_all();
    cache.kv.check_invariants();
    assert_eq!((cache.kv.pool().sessions(), cache.kv.pool().kept()), (0, 0));
}

/// The order in plain code: every reusable block with its session, and a search through all of them.
#[derive(Default)]
struct Plain {
    /// Block by its place: the letters up to it.
    blocks: BTreeMap<String, (Option<String>, u64)>,
    hints: BTreeMap<String, Option<Millis>>,
    uses: u64,
}

impl Plain {
    fn standing(&self, session: Option<&String>, now: Millis) -> Standing {
        match session.and_then(|session| self.hints.get(session)) {
            None => Standing::Plain,
            Some(None) => Standing::Released,
            Some(Some(until)) if *until <= now => Standing::Expired,
            Some(Some(_)) => Standing::Kept,
        }
    }

    fn evict(&mut self, now: Millis, kept_max: usize) {
        let kept =
            |entry: &(Option<String>, u64)| self.standing(entry.0.as_ref(), now) == Standing::Kept;
        let over = self.blocks.values().filter(|entry| kept(entry)).count() > kept_max;
        let is_leaf = |place: &&String| {
            let longer = |other: &String| other.len() > place.len() && other.starts_with(*place);
            !self.blocks.keys().any(longer)
        };
        let rank = |place: &&String| {
            let (session, used) = &self.blocks[*place];
            let standing = self.standing(session.as_ref(), now);
            let standing = if over && standing == Standing::Kept {
                Standing::Plain
            } else {
                standing
            };
            (standing, *used)
        };
        let victim = self.blocks.keys().filter(is_leaf).min_by_key(rank).cloned();
        self.blocks.remove(&victim.unwrap());
    }

    fn turn(
        &mut self,
        session: Option<&str>,
        letters: &str,
        capacity: usize,
        cap: (Millis, usize),
    ) -> usize {
        let (now, kept_max) = cap;
        let places: Vec<_> = (1..=letters.len())
            .map(|n| letters[..n].to_owned())
            .collect();
        let found = places
            .iter()
            .take_while(|p| self.blocks.contains_key(*p))
            .count();
        if let Some(session) = session
            && self.standing(Some(&session.to_owned()), now) != Standing::Kept
        {
            self.hints.remove(session);
        }
        // Those found are held, so that they cannot go: they come out, and back in with all others at the end.
        let mut held: Vec<_> = places[..found]
            .iter()
            .map(|place| (place.clone(), self.blocks.remove(place).unwrap().0))
            .map(|(place, owner)| (place, owner.filter(|owner| Some(owner.as_str()) == session)))
            .collect();
        let new = places[found..]
            .iter()
            .map(|place| (place.clone(), session.map(str::to_owned)));
        held.extend(new);
        // What builds on a found block is idle and stays; a tail's block is wanted too.
        while self.blocks.len() + letters.len() + 1 > capacity {
            self.evict(now, kept_max);
        }
        for (place, owner) in held.into_iter().rev() {
            self.uses += 1;
            self.blocks.insert(place, (owner, self.uses));
        }
        // What was said was about the pause that this turn has ended.
        session.map(|session| self.hints.remove(session));
        // With its last block a session and its hint are forgotten.
        let owns = |session: &String| self.blocks.values().any(|b| b.0.as_ref() == Some(session));
        self.hints.retain(|session, _| owns(session));
        found
    }
}

#[derive(Clone, Debug)]
enum Op {
    Turn(Option<&'static str>, String, Option<Millis>),
    Release(&'static str),
    Wait(Millis),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let session = || prop::sample::select(vec!["s", "t"]);
    let keep = prop::option::of(0..30u64);
    let op = prop_oneof![
        6 => (prop::option::of(session()), "[ab]{1,4}", keep).prop_map(|(s, l, k)| Op::Turn(s, l, k)),
        1 => session().prop_map(Op::Release),
        2 => (1..20u64).prop_map(Op::Wait),
    ];
    prop::collection::vec(op, 1..40)
}

proptest! {
    #[test]
    fn turns_find_what_the_plain_order_has_left(ops in ops(), capacity in 5..12usize, kept_max in 0..6usize) {
        let mut cache = Cache::new(capacity, kept_max);
        let mut plain = Plain::default();
        for op in ops {
            match op {
                Op::Turn(session, letters, keep) => {
                    let now = cache.now;
                    let until = keep.map(|keep| now + keep);
                    let expect = plain.turn(session, &letters, capacity, (now, kept_max));
                    prop_assert_eq!(cache.turn_keeping(session, &letters, until), expect);
                    if let (Some(session), Some(until)) = (session, until) {
                        // A session whose blocks are all shared owns nothing, and nothing is known of it.
                        if plain.blocks.values().any(|b| b.0.as_deref() == Some(session)) {
                            plain.hints.insert(session.to_owned(), Some(until));
                        }
                    }
                }
                Op::Release(session) => {
                    if cache.kv.release(session) {
                        plain.hints.insert(session.to_owned(), None);
                    }
                }
                Op::Wait(by) => cache.advance(cache.now + by),
            }
            prop_assert_eq!(cache.kv.pool().cached(), plain.blocks.len());
        }
    }
}
