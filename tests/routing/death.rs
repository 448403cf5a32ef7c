//! One replica of eight goes and comes back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use system_tests::front::Front;

use crate::{
    play::{Turn, play, replicas},
    talk::{Dress, Talk},
};

const SESSIONS: usize = 400;
const REPLICAS: usize = 8;
/// The one that goes.
const VICTIM: usize = 3;
/// Tokens of a session's own text: enough that a move costs more than any queue here.
const SESSION_TOKENS: u64 = 1_500;
/// Blocks of one replica's cache: room for all of its sessions, and for those of a neighbour.
const KV_BLOCKS: usize = 8_192;

/// Where each session's turn was answered.
fn places(turns: &[Turn]) -> Vec<String> {
    let mut places = vec![String::new(); SESSIONS];
    for turn in turns {
        places[turn.talk].clone_from(&turn.answered.replica);
    }
    places
}

/// Sessions whose place is another one than before.
fn moved(before: &[String], after: &[String]) -> BTreeSet<usize> {
    (0..SESSIONS).filter(|s| before[*s] != after[*s]).collect()
}

async fn check(dress: Dress) {
    let talk = |i| Talk::made(&format!("session {i}"), "", 4, SESSION_TOKENS, 50);
    let talks = Arc::new((0..SESSIONS).map(talk).collect::<Vec<_>>());
    let mut replicas = replicas(REPLICAS, KV_BLOCKS).await;
    let mut front = Front::start(&replicas, None).await;
    let victim = format!("replica-{VICTIM}");

    let before = places(&play(front.listen, &talks, 0..1, SESSIONS, dress).await);
    let orphans: BTreeSet<usize> = (0..SESSIONS).filter(|s| before[*s] == victim).collect();
    let share = orphans.len() as f64 / SESSIONS as f64;

    replicas[VICTIM].die().await;
    let during = places(&play(front.listen, &talks, 1..2, SESSIONS, dress).await);
    assert_eq!(
        moved(&before, &during),
        orphans,
        "{dress:?}: only the dead replica's sessions move"
    );
    let mut heirs: BTreeMap<&str, usize> = BTreeMap::new();
    for orphan in &orphans {
        *heirs.entry(&during[*orphan]).or_default() += 1;
    }
    let most = heirs.values().max().copied().unwrap_or(0) as f64;
    let mean = orphans.len() as f64 / (REPLICAS - 1) as f64;

    replicas[VICTIM].come_back().await;
    front.wait_for_ready(REPLICAS).await;
    let after = places(&play(front.listen, &talks, 2..3, SESSIONS, dress).await);
    let movers = moved(&during, &after);
    let home = movers.iter().filter(|s| after[**s] == victim).count();
    println!(
        "{dress:?}: {share:.3} of sessions moved, the most to one of seven {:.2} x the mean; {home} of {} came home",
        most / mean,
        orphans.len()
    );
    assert!(
        (0.06..=0.19).contains(&share),
        "{dress:?}: {share:.3} of the sessions were on one of eight"
    );
    assert!(
        most <= 1.5 * mean,
        "{dress:?}: one neighbour inherits {most} where the mean is {mean:.1}: {heirs:?}"
    );
    assert!(
        movers.is_subset(&orphans),
        "{dress:?}: others moved when it came back"
    );
    assert_eq!(home, movers.len(), "{dress:?}: who moves then, moves home");

    let last = places(&play(front.listen, &talks, 3..4, SESSIONS, dress).await);
    assert_eq!(
        moved(&after, &last),
        BTreeSet::new(),
        "{dress:?}: then nobody moves"
    );
}

#[tokio::test]
async fn a_dead_replica_s_sessions_spread_and_nobody_else_moves() {
    check(Dress::SessionHeader).await;
}

#[tokio::test]
async fn nor_where_sessions_have_no_id() {
    check(Dress::Bare).await;
}
