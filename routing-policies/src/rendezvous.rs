//! The order in which a key prefers replicas: highest random weight first.
//!
//! Each (key, replica) pair has a score of its own, so a replica that leaves takes only its own keys with it, each to that key's
//! second choice, and one that comes takes about its share from all.

use std::cmp::Reverse;

use crate::key::{PlacementKey, ReplicaId};

/// Sorts `replicas` by preference of `key`, first choice first, and drops repetitions. The order in which they came means nothing.
pub fn order<T>(key: PlacementKey, replicas: &mut Vec<T>, id: impl Fn(&T) -> ReplicaId) {
    replicas.sort_by_cached_key(|replica| {
        let id = id(replica);
        (Reverse(key.score(id)), id)
    });
    replicas.dedup_by_key(|replica| id(replica));
}

#[cfg(test)]
mod tests;
