//! Many conversations that begin with the same long text.

use std::sync::Arc;

use system_tests::front::Front;

use crate::{
    play::{max_over_mean, play, replicas},
    talk::{Dress, Talk, words},
};

/// Tokens of the system prompt that all share.
const SYSTEM_TOKENS: u64 = 3_000;
const SESSIONS: usize = 400;
const REPLICAS: usize = 4;
/// Blocks of one replica's cache: room for all sessions' own text.
const KV_BLOCKS: usize = 4_096;

async fn check(dress: Dress) {
    let system = words(
        "You are an airline's agent. This is the policy:",
        SYSTEM_TOKENS,
    );
    let talk = |i| Talk::made(&format!("customer {i}"), &system, 2, 200, 50);
    let talks = Arc::new((0..SESSIONS).map(talk).collect::<Vec<_>>());
    let replicas = replicas(REPLICAS, KV_BLOCKS).await;
    let front = Front::start(&replicas, None).await;
    let first = play(front.listen, &talks, 0..1, SESSIONS, dress).await;
    let served: Vec<_> = replicas.iter().map(|replica| replica.served()).collect();
    let hottest = max_over_mean(&served, |served| served.requests);
    let mut homes = vec![""; SESSIONS];
    for turn in &first {
        homes[turn.talk] = &turn.answered.replica;
    }
    let second = play(front.listen, &talks, 1..2, SESSIONS, dress).await;
    let back = second
        .iter()
        .filter(|t| t.answered.replica == homes[t.talk]);
    let back = back.count() as f64 / SESSIONS as f64;
    println!(
        "{dress:?}: hottest replica {hottest:.2} x the mean, {back:.3} of second turns come back"
    );
    assert!(
        hottest <= 1.5,
        "{dress:?}: hottest replica {hottest:.2} x the mean"
    );
    assert!(
        back >= 0.95,
        "{dress:?}: {back:.3} of second turns come back"
    );
}

#[tokio::test]
async fn rc_072_a_shared_system_prompt_draws_nobody_to_one_replica() {
    check(Dress::Bare).await;
}

#[tokio::test]
async fn rc_072_nor_does_it_with_a_session_header() {
    check(Dress::SessionHeader).await;
}
