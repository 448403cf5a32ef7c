//! What the replicas remember: counts, and how much of each session every one of them has in its cache.

use crate::knobs::Knobs;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Tokens of a cache block; a cache holds whole blocks only.
pub(crate) const BLOCK_TOKENS: u64 = 16;
/// Blocks that a replica says it has: its cache is bounded by sessions, whatever their length, so this is more than a run fills.
pub(crate) const KV_BLOCKS: u64 = 1 << 20;
/// Sessions that one replica's cache holds; the one stored first goes first.
const SESSIONS_MAX: usize = 4_096;
/// Shared beginnings that one replica's cache holds; later ones are not kept.
const SHARED_MAX: usize = 1_024;
/// Turns of one session whose places are noted.
const VISITS_MAX: usize = 64;

/// All replicas of this process.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) knobs: Knobs,
    replicas: Vec<Replica>,
    /// For each session, which replica got each of its turns; of the first [`SESSIONS_MAX`] sessions, [`VISITS_MAX`] turns each.
    visits: BTreeMap<u64, Vec<usize>>,
}

#[derive(Debug, Default)]
struct Replica {
    port: u16,
    chat: u64,
    streamed: u64,
    with_session_header: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    cache: Cache,
}

/// Tokens of each session's last prompt.
#[derive(Debug, Default)]
struct Cache {
    tokens: HashMap<u64, u64>,
    /// Sessions in the order in which they were stored first; the same as the keys of `tokens`.
    order: VecDeque<u64>,
    /// Beginnings that several sessions may share; at most [`SHARED_MAX`].
    shared: HashSet<u64>,
}

/// What one chat request looked like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) session: Option<u64>,
    pub(crate) prompt_tokens: u64,
    /// A hash and the tokens of what it begins with and other sessions may begin with too.
    pub(crate) shared: Option<(u64, u64)>,
    pub(crate) stream: bool,
    pub(crate) session_header: bool,
}

impl Fleet {
    /// One idle replica for each port.
    pub(crate) fn new(ports: &[u16]) -> Self {
        let replicas = ports
            .iter()
            .map(|port| Replica {
                port: *port,
                ..Replica::default()
            })
            .collect();
        Self {
            knobs: Knobs::default(),
            replicas,
            visits: BTreeMap::new(),
        }
    }

    /// Forgets all counts and caches.
    pub(crate) fn reset(&mut self) {
        self.visits.clear();
        for replica in &mut self.replicas {
            *replica = Replica {
                port: replica.port,
                ..Replica::default()
            };
        }
    }

    /// Notes a request at replica `index`; the tokens of its prompt that the replica had in its cache.
    pub(crate) fn chat(&mut self, index: usize, seen: Seen) -> u64 {
        let Some(replica) = self.replicas.get_mut(index) else {
            return 0;
        };
        if let Some(session) = seen.session
            && (self.visits.len() < SESSIONS_MAX || self.visits.contains_key(&session))
        {
            let visits = self.visits.entry(session).or_default();
            if visits.len() < VISITS_MAX {
                visits.push(index);
            }
        }
        let cached = seen.session.map_or(0, |session| {
            let begun = replica.cache.begin(seen.shared, seen.prompt_tokens);
            replica.cache.visit(session, seen.prompt_tokens).max(begun)
        });
        replica.chat += 1;
        replica.streamed += u64::from(seen.stream);
        replica.with_session_header += u64::from(seen.session_header);
        replica.prompt_tokens += seen.prompt_tokens;
        replica.cached_tokens += cached;
        cached
    }

    /// The counts as JSON, replica by replica.
    pub(crate) fn stats(&self) -> Value {
        let row = |replica: &Replica| {
            json!({
                "port": replica.port,
                "chat": replica.chat,
                "streamed": replica.streamed,
                "with_session_header": replica.with_session_header,
                "prompt_tokens": replica.prompt_tokens,
                "cached_tokens": replica.cached_tokens,
            })
        };
        json!({
            "replicas": self.replicas.iter().map(row).collect::<Vec<_>>(),
            "sessions": self.visits,
        })
    }
}

impl Cache {
    /// Tokens of a shared beginning that are here from any session; stores it.
    fn begin(&mut self, shared: Option<(u64, u64)>, tokens: u64) -> u64 {
        let Some((key, long)) = shared else { return 0 };
        if self.shared.contains(&key) {
            return long.min(tokens.saturating_sub(1)) / BLOCK_TOKENS * BLOCK_TOKENS;
        }
        if self.shared.len() < SHARED_MAX {
            self.shared.insert(key);
        }
        0
    }

    /// Tokens of a prompt of `tokens` that are here from the session's turn before; stores the prompt. The last
    /// token is always computed, since its logits are needed.
    fn visit(&mut self, session: u64, tokens: u64) -> u64 {
        let known = self.tokens.insert(session, tokens);
        if known.is_none() {
            self.order.push_back(session);
            if self.order.len() > SESSIONS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.tokens.remove(&oldest);
            }
        }
        let usable = known.unwrap_or(0).min(tokens.saturating_sub(1));
        usable / BLOCK_TOKENS * BLOCK_TOKENS
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, Fleet, SESSIONS_MAX, Seen, json};

    /// Visits in order, each (session, tokens, tokens that must be cached).
    #[track_caller]
    fn check(visits: &[(u64, u64, u64)]) {
        let mut cache = Cache::default();
        for (session, tokens, expect) in visits {
            assert_eq!(
                cache.visit(*session, *tokens),
                *expect,
                "{session} {tokens} of {visits:?}"
            );
        }
    }

    #[test]
    fn a_replica_has_the_whole_blocks_of_the_turn_before() {
        check(&[
            (1, 100, 0),
            (1, 150, 96),
            (1, 150, 144),
            (1, 20, 16),
            (1, 160, 16),
        ]);
        check(&[(1, 100, 0), (2, 100, 0), (1, 100, 96)]);
        check(&[(1, 0, 0), (1, 0, 0), (1, 1, 0)]);
        check(&[(1, 32, 0), (1, 32, 16), (1, 33, 32)]);
    }

    #[test]
    fn the_cache_is_bounded() {
        let mut cache = Cache::default();
        for session in 0..=SESSIONS_MAX as u64 {
            cache.visit(session, 64);
        }
        assert_eq!(
            (cache.tokens.len(), cache.order.len()),
            (SESSIONS_MAX, SESSIONS_MAX)
        );
        assert_eq!((cache.visit(1, 64), cache.visit(0, 64)), (48, 0));
    }

    #[test]
    fn a_cache_is_its_replica_s_own_and_goes_with_a_reset() {
        let seen = Seen {
            session: Some(1),
            prompt_tokens: 64,
            shared: None,
            stream: false,
            session_header: false,
        };
        let mut fleet = Fleet::new(&[1, 2]);
        assert_eq!(
            [
                fleet.chat(0, seen),
                fleet.chat(1, seen),
                fleet.chat(1, seen)
            ],
            [0, 0, 48]
        );
        assert_eq!(fleet.stats()["replicas"][1]["cached_tokens"], 48);
        assert_eq!(fleet.stats()["sessions"], json!({"1": [0, 1, 1]}));
        fleet.reset();
        assert_eq!(fleet.chat(1, seen), 0);
        let with_shared = |session| Seen {
            session: Some(session),
            shared: Some((9, 40)),
            ..seen
        };
        assert_eq!(
            [2, 3, 3].map(|session| fleet.chat(0, with_shared(session))),
            [0, 32, 48]
        );
    }
}
