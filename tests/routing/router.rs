//! Ways to route without a gateway, to compare with: a client that knows all replicas chooses one itself.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    net::SocketAddr,
    sync::Mutex,
};

use routing_policies::placement::{Block, Lru};

/// Bytes of a request that the cache-aware router takes for one block.
const BLOCK_BYTES: usize = 64;
/// Its thresholds, the usual ones of routers of this kind: share of the request that must match, and by how many requests and how many
/// times the fullest replica may exceed the emptiest before balance goes first.
const MATCH: f64 = 0.5;
const ABSOLUTE: usize = 32;
const RELATIVE: f64 = 1.1;

/// Chooses where a request goes.
pub(crate) trait Router: Send + Sync {
    /// The address for a request of the session `name`.
    fn pick(&self, name: &str, body: &str) -> SocketAddr;

    /// A request that went to `addr` has been answered.
    fn done(&self, _addr: SocketAddr) {}
}

/// Everything to one address.
pub(crate) struct To(pub(crate) SocketAddr);

impl Router for To {
    fn pick(&self, _: &str, _: &str) -> SocketAddr {
        self.0
    }
}

/// By a hash of the session's name.
pub(crate) struct SessionHash(pub(crate) Vec<SocketAddr>);

impl Router for SessionHash {
    fn pick(&self, name: &str, _: &str) -> SocketAddr {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        self.0[hasher.finish() as usize % self.0.len()]
    }
}

/// The longest match of what was sent before, unless the requests in flight are out of balance or it is too short; then the fewest in
/// flight. It believes that nothing is ever evicted.
pub(crate) struct CacheAware {
    replicas: Mutex<Vec<Replica>>,
}

struct Replica {
    addr: SocketAddr,
    in_flight: usize,
    sent: Lru,
}

impl CacheAware {
    pub(crate) fn new(addrs: &[SocketAddr]) -> Self {
        let replica = |addr: &SocketAddr| Replica {
            addr: *addr,
            in_flight: 0,
            sent: Lru::new(u64::MAX),
        };
        Self {
            replicas: Mutex::new(addrs.iter().map(replica).collect()),
        }
    }
}

impl Router for CacheAware {
    fn pick(&self, _: &str, body: &str) -> SocketAddr {
        let mut hasher = DefaultHasher::new();
        let block = |bytes: &[u8]| {
            hasher.write(bytes);
            Block {
                key: hasher.finish(),
                tokens: BLOCK_BYTES as u32,
            }
        };
        let blocks: Vec<Block> = body
            .as_bytes()
            .chunks_exact(BLOCK_BYTES)
            .map(block)
            .collect();
        let mut replicas = self.replicas.lock().expect("no holder panics");
        let most = replicas.iter().map(|r| r.in_flight).max().unwrap_or(0);
        let least = replicas.iter().map(|r| r.in_flight).min().unwrap_or(0);
        let apart = most - least > ABSOLUTE && most as f64 > RELATIVE * least as f64;
        let matched = |r: &Replica| r.sent.held_tokens(&blocks);
        let best = replicas.iter().map(matched).max().unwrap_or(0);
        let enough = best as f64 > MATCH * body.len() as f64;
        let fits = |r: &&mut Replica| {
            if enough && !apart {
                matched(r) == best
            } else {
                r.in_flight == least
            }
        };
        let chosen = replicas.iter_mut().find(fits).expect("one of them fits");
        chosen.in_flight += 1;
        chosen.sent.insert(&blocks, |_, _| ());
        chosen.addr
    }

    fn done(&self, addr: SocketAddr) {
        let mut replicas = self.replicas.lock().expect("no holder panics");
        for replica in replicas.iter_mut().filter(|r| r.addr == addr) {
            replica.in_flight -= 1;
        }
    }
}
