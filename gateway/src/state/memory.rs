//! A bounded map with an age limit: what the gateway remembers of sessions and prefixes. When it is full the
//! oldest entry that nobody used lately goes (a queue with a second chance), so the bound is exact.

use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use tokio::time::Instant;

/// Remembers a small value per key. Keys are hashes already and are compared whole.
///
/// A turn that finds its key takes one shard's lock of the map for a few instructions. Only a new key and a sweep
/// take the queue's lock, always before a shard's, and only under it do keys come and go.
#[derive(Debug)]
pub struct Memory<K: Hash + Eq> {
    entries: DashMap<K, Entry, BuildHasherDefault<FirstWord>>,
    /// Every key of `entries` once, in the order of insertion or second chance.
    queue: Mutex<VecDeque<K>>,
    entries_max: AtomicUsize,
    ttl_seconds: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    value: u16,
    used: Instant,
    /// Used since it was queued: it gets a second chance.
    again: bool,
}

/// Keys are uniform hashes: their words mixed are as good as any hash of them.
#[derive(Debug, Default)]
pub(super) struct FirstWord(u64);

impl Hasher for FirstWord {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = self.0.rotate_left(29) ^ word;
    }

    fn write_u128(&mut self, word: u128) {
        self.write(&word.to_le_bytes());
    }
}

impl<K: Hash + Eq + Copy> Memory<K> {
    /// Room for `entries_max` keys (at least one), each forgotten after `ttl`, in whole seconds, without use.
    #[must_use]
    pub fn new(entries_max: usize, ttl: Duration) -> Self {
        Self {
            entries: DashMap::default(),
            queue: Mutex::default(),
            entries_max: AtomicUsize::new(entries_max.max(1)),
            ttl_seconds: AtomicU64::new(ttl.as_secs()),
        }
    }

    /// Changes the room and the age limit. What does not fit goes now, what is too old counts as gone at once. Gives how many keys were
    /// found until now and are not any more.
    pub fn limit(&self, entries_max: usize, ttl: Duration) -> usize {
        let entries_max = entries_max.max(1);
        let now = Instant::now();
        let mut queue = self.queue();
        let ttl_before = self.ttl();
        let found = self.younger(ttl_before, now);
        self.ttl_seconds.store(ttl.as_secs(), Ordering::Relaxed);
        self.entries_max.store(entries_max, Ordering::Relaxed);
        while queue.len() > entries_max {
            self.evict(&mut queue, now);
        }
        // A longer age limit may find some again that had not been swept yet; they make up for none that is lost.
        found.saturating_sub(self.younger(ttl.min(ttl_before), now))
    }

    /// How many keys are at most so old.
    fn younger(&self, ttl: Duration, now: Instant) -> usize {
        let young = |entry: &Entry| now.duration_since(entry.used) <= ttl;
        self.entries.iter().filter(|entry| young(entry)).count()
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(self.ttl_seconds.load(Ordering::Relaxed))
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<K>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of a key that is not too old. Looking does not make it younger; [`Memory::put`] does.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<u16> {
        self.get_dated(key).map(|(value, _)| value)
    }

    /// The value of a key that is not too old, and when it was put.
    #[must_use]
    pub fn get_dated(&self, key: &K) -> Option<(u16, Instant)> {
        let entry = *self.entries.get(key)?;
        (entry.used.elapsed() <= self.ttl()).then_some((entry.value, entry.used))
    }

    /// Remembers a value, replacing the key's old one.
    pub fn put(&self, key: K, value: u16) {
        let used = Instant::now();
        if self.replace(&key, value, used) {
            return;
        }
        let mut queue = self.queue();
        // Another thread may have put the same key since.
        if self.replace(&key, value, used) {
            return;
        }
        while queue.len() >= self.entries_max.load(Ordering::Relaxed) {
            self.evict(&mut queue, used);
        }
        let again = false;
        self.entries.insert(key, Entry { value, used, again });
        queue.push_back(key);
    }

    fn replace(&self, key: &K, value: u16, used: Instant) -> bool {
        let again = true;
        let replaced = self.entries.get_mut(key).map(|mut entry| {
            *entry = Entry { value, used, again };
        });
        replaced.is_some()
    }

    /// Forgets what is too old, so that the count tells the truth.
    pub fn sweep(&self) {
        let now = Instant::now();
        let mut queue = self.queue();
        self.entries
            .retain(|_, entry| now.duration_since(entry.used) <= self.ttl());
        queue.retain(|key| self.entries.contains_key(key));
    }

    /// Forgets the keys with such a value. Gives how many of them were not too old.
    pub fn forget(&self, gone: impl Fn(u16) -> bool) -> usize {
        let (now, ttl) = (Instant::now(), self.ttl());
        let mut queue = self.queue();
        let mut young = 0;
        self.entries.retain(|_, entry| {
            let gone = gone(entry.value);
            young += usize::from(gone && now.duration_since(entry.used) <= ttl);
            !gone
        });
        queue.retain(|key| self.entries.contains_key(key));
        young
    }

    /// How many keys are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue().len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes one entry: the first of the queue that is too old or was not used again. Ends, since each round
    /// removes an entry or takes away a second chance.
    fn evict(&self, queue: &mut VecDeque<K>, now: Instant) {
        while let Some(key) = queue.pop_front() {
            let Some(mut entry) = self.entries.get_mut(&key) else {
                continue;
            };
            if entry.again && now.duration_since(entry.used) <= self.ttl() {
                entry.again = false;
                queue.push_back(key);
                continue;
            }
            drop(entry);
            self.entries.remove(&key);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_value_lasts_for_its_time_since_the_last_put() {
        let memory = Memory::new(1024, TTL);
        memory.put(7_u128, 1);
        tokio::time::advance(TTL).await;
        assert_eq!(memory.get(&7), Some(1));
        memory.put(7, 2);
        tokio::time::advance(TTL).await;
        assert_eq!(memory.get(&7), Some(2));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(memory.get(&7), None);
        memory.sweep();
        assert!(memory.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_used_entry_outlives_unused_ones_that_came_later() {
        let memory = Memory::new(3, TTL);
        for key in 0..3_u128 {
            memory.put(key, 0);
        }
        memory.put(0, 9);
        memory.put(3, 0);
        assert_eq!(
            [0, 1, 2, 3].map(|key| memory.get(&key)),
            [Some(9), None, Some(0), Some(0)]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn new_limits_hold_at_once_and_keep_what_fits() {
        let memory = Memory::new(8, TTL);
        for key in 0..6_u128 {
            memory.put(key, 7);
        }
        memory.put(0, 9);
        memory.limit(2, TTL);
        assert_eq!((memory.len(), memory.get(&0)), (2, Some(9)));
        memory.put(6, 1);
        assert_eq!(memory.len(), 2);
        memory.limit(8, Duration::from_secs(1));
        assert_eq!((memory.len(), memory.get(&6)), (2, Some(1)));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(memory.get(&6), None);
        memory.limit(8, TTL);
        assert_eq!(memory.get(&6), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn keys_of_a_value_are_forgotten_and_the_young_ones_counted() {
        let memory = Memory::new(8, TTL);
        memory.put(0_u128, 1);
        tokio::time::advance(TTL + Duration::from_secs(1)).await;
        for key in 1..6 {
            memory.put(key, u16::from(key % 2 == 1));
        }
        assert_eq!(memory.forget(|value| value == 1), 3);
        assert_eq!((memory.len(), memory.entries.len()), (2, 2));
        assert_eq!((memory.get(&1), memory.get(&2)), (None, Some(0)));
    }

    proptest! {
        #[test]
        fn the_bound_holds_and_the_last_put_is_there(
            steps in proptest::collection::vec((0_u8..12, 0_u16..3), 1..200),
        ) {
            let memory = Memory::new(4, TTL);
            for (key, value) in steps {
                let key = u128::from(key);
                memory.put(key, value);
                prop_assert_eq!(memory.get(&key), Some(value));
                prop_assert!(memory.len() <= 4);
                prop_assert_eq!(memory.len(), memory.entries.len());
            }
        }
    }
}
