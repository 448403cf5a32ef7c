//! What the gateway remembers has a bound.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::json;
use system_tests::{client::Client, front::Front, scripted::MODEL};
use tokio::task::JoinSet;

use crate::play::replicas;

/// Distinct prefixes that are sent; `PINION_PREFIXES` asks for another number.
const PREFIXES: u64 = 200_000;
/// Messages of one request, each the end of a prefix that no other request has.
const MESSAGES: u64 = 8;
/// Blocks of one replica's cache.
const KV_BLOCKS: usize = 2_048;
const CONNECTIONS: u64 = 8;
/// Pins and homes that the gateway may remember: far fewer than are sent before the first look.
const POLICY: &str = "version = 1\n[session]\npins_max = 4000\n";
/// How much the process may still grow once its tables are full, in bytes: what an allocator's fragments come to.
const GROWTH_BYTES_MAX: u64 = 8 << 20;

/// Sends requests `next..end`, every second one with a session header.
async fn send(front: &Front, next: &Arc<AtomicU64>, end: u64) {
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (next, listen) = (next.clone(), front.listen);
        connections.spawn(async move {
            let mut client = Client::new(listen);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return;
                }
                let message = |i| json!({"role": "user", "content": format!("{number} asks {i}: where is my suitcase?")});
                let messages: Vec<_> = (0..MESSAGES).map(message).collect();
                let body = json!({"model": MODEL, "messages": messages}).to_string();
                let name = format!("session-{number}");
                let header = [("x-session-id", name.as_str())];
                let headers = if number % 2 == 0 { &header[..] } else { &[] };
                client.chat(headers, body).await;
            }
        });
    }
    while let Some(ended) = connections.join_next().await {
        ended.expect("a connection that met no failure");
    }
    next.store(end, Ordering::Relaxed);
}

#[tokio::test]
async fn memory_is_flat_over_any_number_of_prefixes() {
    let prefixes = match std::env::var("PINION_PREFIXES") {
        Ok(text) => text.parse().expect("PINION_PREFIXES is a number"),
        Err(_) => PREFIXES,
    };
    let requests = prefixes / MESSAGES;
    let replicas = replicas(2, KV_BLOCKS).await;
    let front = Front::start(&replicas, Some(POLICY)).await;
    let next = Arc::new(AtomicU64::new(0));
    let mut sizes = vec![front.resident_bytes()];
    for part in 1..=4 {
        send(&front, &next, requests * part / 4).await;
        sizes.push(front.resident_bytes());
    }
    let kib: Vec<u64> = sizes.iter().map(|size| size / 1_024).collect();
    println!("resident KiB at first and after each quarter of {prefixes} prefixes: {kib:?}");
    let growth = sizes[4].saturating_sub(sizes[2]);
    assert!(
        growth <= GROWTH_BYTES_MAX,
        "{growth} bytes more in the second half: {kib:?} KiB"
    );
}
