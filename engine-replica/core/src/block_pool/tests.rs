use proptest::prelude::*;

use super::*;

/// Takes `n` blocks, caching those whose place is in `cached`, which starts at 0 without gaps.
fn lease(pool: &mut BlockPool, n: usize, cached: &[usize]) -> Vec<BlockId> {
    let table: Vec<_> = (0..n).map(|_| pool.take().unwrap().block).collect();
    for &i in cached {
        pool.mark_cached(table[i], i.checked_sub(1).map(|before| table[before]));
    }
    table
}

/// The order in which the pool would give its blocks out.
fn order(pool: &mut BlockPool) -> Vec<BlockId> {
    std::iter::from_fn(|| pool.take())
        .map(|taken| taken.block)
        .collect()
}

#[test]
fn blocks_without_content_are_reused_before_cached_ones() {
    let mut pool = BlockPool::new(5);
    let table = lease(&mut pool, 4, &[0, 1]);
    pool.give_back(&table);
    pool.check_invariants();
    // Freed without content: 2 and 3, the tail first; then the never used 4; then the cached tail and head.
    assert_eq!(order(&mut pool), [3, 2, 4, 1, 0]);
}

#[test]
fn the_tail_of_a_prefix_is_reused_before_its_head() {
    let mut pool = BlockPool::new(3);
    let table = lease(&mut pool, 3, &[0, 1, 2]);
    pool.give_back(&table);
    assert_eq!(
        pool.take(),
        Some(Taken {
            block: 2,
            evicted: true
        })
    );
    pool.check_invariants();
}

#[test]
fn the_longest_unused_prefix_goes_first() {
    let mut pool = BlockPool::new(4);
    let (old, new) = (lease(&mut pool, 2, &[0, 1]), lease(&mut pool, 2, &[0, 1]));
    pool.give_back(&old);
    pool.give_back(&new);
    // A hit on the old one makes it the younger.
    old.iter().for_each(|&block| pool.hold(block));
    pool.give_back(&old);
    assert_eq!(order(&mut pool), [3, 2, 1, 0]);
}

#[test]
fn a_freed_cached_block_keeps_its_content_until_it_is_reused() {
    let mut pool = BlockPool::new(2);
    let table = lease(&mut pool, 1, &[0]);
    pool.give_back(&table);
    assert_eq!((pool.cached(), pool.available(), pool.leased()), (1, 2, 0));
    pool.hold(0);
    assert_eq!((pool.cached(), pool.available(), pool.leased()), (0, 1, 1));
    pool.give_back(&[0]);
    assert_eq!(
        pool.take(),
        Some(Taken {
            block: 1,
            evicted: false
        })
    );
    assert_eq!(
        pool.take(),
        Some(Taken {
            block: 0,
            evicted: true
        })
    );
    assert_eq!(pool.take(), None);
    pool.check_invariants();
}

#[derive(Clone, Debug)]
enum Op {
    Lease { blocks: usize, cached: usize },
    Share(usize),
    GiveBack(usize),
    Forget,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (1..4usize, 0..4usize).prop_map(|(blocks, cached)| Op::Lease { blocks, cached }),
        3 => (0..8usize).prop_map(Op::Share),
        4 => (0..8usize).prop_map(Op::GiveBack),
        1 => Just(Op::Forget),
    ];
    prop::collection::vec(op, 0..60)
}

proptest! {
    #[test]
    fn every_block_is_free_cached_or_leased_after_any_operations(ops in ops(), capacity in 1..9usize) {
        let mut pool = BlockPool::new(capacity);
        let mut leases: Vec<Vec<BlockId>> = Vec::new();
        for op in ops {
            match op {
                Op::Lease { blocks, cached } if blocks <= pool.available() => {
                    let cached: Vec<_> = (0..cached.min(blocks)).collect();
                    leases.push(lease(&mut pool, blocks, &cached));
                }
                Op::Share(i) if !leases.is_empty() => {
                    let shared = leases[i % leases.len()].clone();
                    shared.iter().for_each(|&block| pool.hold(block));
                    leases.push(shared);
                }
                Op::GiveBack(i) if !leases.is_empty() => {
                    let given = leases.swap_remove(i % leases.len());
                    pool.give_back(&given);
                }
                Op::Forget => pool.forget_contents(),
                _ => {}
            }
            pool.check_invariants();
            for block in 0..capacity as BlockId {
                let held = leases.iter().flatten().filter(|&&b| b == block).count();
                prop_assert_eq!(pool.refs(block) as usize, held);
            }
        }
        leases.iter().for_each(|table| pool.give_back(table));
        pool.check_invariants();
        prop_assert_eq!(pool.available(), capacity);
    }
}
