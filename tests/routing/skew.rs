//! Sessions of very different eagerness, on replicas whose prefill takes time: the gateway beside a client that hashes the session
//! and one that follows the longest match.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use system_tests::{
    client::Client,
    front::Front,
    scripted::{Scripted, Setup},
};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    play::{Turn, hit, max_over_mean, within},
    router::{CacheAware, Router, SessionHash, To},
    talk::{Dress, Talk},
};

const REPLICAS: usize = 4;
const SESSIONS: usize = 48;
const REQUESTS: usize = 1_500;
/// Requests in flight at one time.
const CONNECTIONS: usize = 12;
/// Turns of one conversation; then the same user begins another.
const TURNS: usize = 30;
const SETUP: Setup = Setup {
    kv_blocks: 2_048,
    prefill_per_1000: Duration::from_millis(10),
};

/// Turn by turn, whose it is: session k is 1/(k+1) as eager as session 0. Each conversation's turns come in order.
fn script() -> (Arc<Vec<Talk>>, Vec<(usize, usize)>) {
    let weights: Vec<f64> = (0..SESSIONS).map(|k| 1.0 / (k + 1) as f64).collect();
    let sum: f64 = weights.iter().sum();
    let mut dice = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let mut at = (dice >> 11) as f64 / (1_u64 << 53) as f64 * sum;
        let found = weights.iter().position(|weight| {
            at -= weight;
            at < 0.0
        });
        found.unwrap_or(0)
    };
    let mut talks = Vec::new();
    let mut going: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let mut order = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        let user = draw();
        let (talk, turn) = match going.get(&user) {
            Some(&(talk, turn)) if turn < TURNS => (talk, turn),
            _ => {
                let name = format!("user {user} in talk {}", talks.len());
                talks.push(Talk::made(&name, "", TURNS, 2_000, 250));
                (talks.len() - 1, 0)
            }
        };
        order.push((talk, turn));
        going.insert(user, (talk, turn + 1));
    }
    (Arc::new(talks), order)
}

/// Plays the script, each turn at the address that `router` picks.
async fn run(router: impl Router + 'static) -> Vec<Turn> {
    let (talks, order) = script();
    let router = Arc::new(router);
    let order = Arc::new(Mutex::new(order.into_iter()));
    let turns = Arc::new(Mutex::new(Vec::new()));
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (talks, order, turns, router) =
            (talks.clone(), order.clone(), turns.clone(), router.clone());
        connections.spawn(async move {
            let mut clients: BTreeMap<SocketAddr, Client> = BTreeMap::new();
            loop {
                let next = order.lock().expect("no holder panics").next();
                let Some((talk, turn)) = next else { return };
                let (headers, body) = talks[talk].request(turn, Dress::SessionHeader, 0);
                let headers: Vec<_> = headers.iter().map(|(k, v)| (*k, v.as_str())).collect();
                let addr = router.pick(talks[talk].name(), &body);
                let client = clients.entry(addr).or_insert_with(|| Client::new(addr));
                let sent = Instant::now();
                let answered = client.chat(&headers, body).await;
                let took = sent.elapsed();
                router.done(addr);
                turns.lock().expect("no holder panics").push(Turn {
                    talk,
                    answered,
                    took,
                });
            }
        });
    }
    while let Some(ended) = connections.join_next().await {
        ended.expect("a connection that met no failure");
    }
    std::mem::take(&mut turns.lock().expect("no holder panics"))
}

/// What one way of routing gave.
struct Figures {
    hit: f64,
    max_over_mean: f64,
}

fn figures(name: &str, replicas: &[Scripted], turns: &[Turn]) -> Figures {
    assert_eq!(turns.len(), REQUESTS, "{name}: every turn is answered once");
    let served: Vec<_> = replicas.iter().map(Scripted::served).collect();
    let figures = Figures {
        hit: hit(turns),
        max_over_mean: max_over_mean(&served, |served| {
            served.prompt_tokens - served.cached_tokens
        }),
    };
    println!(
        "{name}: hit {:.3}, max/mean of tokens prefilled {:.2}, of requests {:.2}, p50 {:?}, p99 {:?}",
        figures.hit,
        figures.max_over_mean,
        max_over_mean(&served, |served| served.requests),
        within(turns, 0.5),
        within(turns, 0.99)
    );
    figures
}

async fn start() -> Vec<Scripted> {
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        replicas.push(Scripted::start(SETUP).await);
    }
    replicas
}

#[tokio::test]
async fn eager_sessions_cost_no_more_than_by_session_hash_or_longest_match() {
    let replicas = start().await;
    let router = SessionHash(replicas.iter().map(Scripted::addr).collect());
    let hashed = figures("session hash", &replicas, &run(router).await);

    let replicas = start().await;
    let addrs: Vec<SocketAddr> = replicas.iter().map(Scripted::addr).collect();
    let matched = run(CacheAware::new(&addrs)).await;
    let matched = figures("longest match", &replicas, &matched);

    let replicas = start().await;
    let front = Front::start(&replicas, None).await;
    let routed = figures("gateway", &replicas, &run(To(front.listen)).await);
    // Loads and times are told above and depend on the machine; what is delivered does not.
    for (other, by) in [(hashed, "session hash"), (matched, "longest match")] {
        assert!(
            routed.hit >= other.hit - 0.05,
            "hit {:.3} beside {:.3} by {by}",
            routed.hit,
            other.hit
        );
        assert!(
            routed.max_over_mean <= other.max_over_mean + 0.25,
            "the most loaded replica prefills {:.2} x the mean, {:.2} x by {by}",
            routed.max_over_mean,
            other.max_over_mean
        );
    }
}
