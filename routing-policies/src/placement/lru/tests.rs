use super::*;
use proptest::prelude::*;

fn prompt(keys: &[u64]) -> Vec<Block> {
    let block = |&key| Block { key, tokens: 1 };
    keys.iter().map(block).collect()
}

/// After `prompts` into a set of `capacity` blocks it holds the leading `expect` blocks of `ask`.
#[track_caller]
fn check(capacity: u64, prompts: &[&[u64]], ask: &[u64], expect: u64) {
    let mut lru = Lru::new(capacity);
    for keys in prompts {
        lru.insert(&prompt(keys), |_, _| ());
    }
    assert_eq!(lru.held_tokens(&prompt(ask)), expect);
}

#[test]
fn only_the_leading_run_counts() {
    check(9, &[&[1, 2, 3]], &[1, 2, 3, 4], 3);
    check(9, &[&[1, 2, 3]], &[9, 2, 3], 0);
    check(9, &[], &[1], 0);
}

#[test]
fn what_was_used_longest_ago_goes_first() {
    check(4, &[&[1, 2], &[3, 4], &[1, 2], &[5, 6]], &[1, 2], 2);
    check(4, &[&[1, 2], &[3, 4], &[1, 2], &[5, 6]], &[3, 4], 0);
}

#[test]
fn the_deepest_block_of_a_prompt_goes_first() {
    check(4, &[&[1, 2, 3], &[4, 5]], &[1, 2, 3], 2);
    check(2, &[&[1, 2, 3, 4, 5]], &[1, 2, 3, 4, 5], 2);
}

fn trim(list: &mut Vec<Block>, capacity: u64) {
    while list.iter().map(|b| u64::from(b.tokens)).sum::<u64>() > capacity {
        list.pop();
    }
}

proptest! {
    // The obvious model: a list, newest first.
    #[test]
    fn it_does_what_a_plain_list_does(
        prompts in prop::collection::vec((prop::collection::vec((0u64..9, 1u32..3), 0..5), prop::option::of(0u64..9)), 1..30),
    ) {
        let (mut lru, mut capacity) = (Lru::new(5), 5);
        let mut list: Vec<Block> = Vec::new();
        for (keys, resize) in prompts {
            // A key has one length, whoever names it.
            let blocks: Vec<Block> = keys.iter().map(|&(key, _)| Block { key, tokens: key as u32 % 3 }).collect();
            lru.insert(&blocks, |_, _| ());
            for block in blocks.iter().rev() {
                list.retain(|held| held.key != block.key);
                list.insert(0, *block);
            }
            trim(&mut list, capacity);
            if let Some(size) = resize {
                capacity = size;
                lru.resize(size, |_, _| ());
                trim(&mut list, capacity);
            }
            prop_assert_eq!(lru.len(), list.len());
            for key in 0..9 {
                let block = Block { key, tokens: 1 };
                prop_assert_eq!(lru.held_tokens(&[block]) == 1, list.iter().any(|held| held.key == key));
            }
        }
    }
}
