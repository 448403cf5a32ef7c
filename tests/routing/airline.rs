//! Real agent sessions (tau-bench's airline agent, with its tool calls and results), replayed turn by turn.

use std::{io::Read as _, path::PathBuf, sync::Arc};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use system_tests::front::Front;

use crate::{
    play::{hit, max_over_mean, play, replicas},
    talk::{Dress, Talk},
};

/// Where the sessions lie in the folder of shared data.
const SESSIONS: &str = "data/sessions/taubench_airline_messages.jsonl.gz";
/// Largest size of that file unpacked, in bytes.
const SESSIONS_BYTES_MAX: u64 = 64 << 20;
/// Sessions that are held at one time.
const ACTIVE: usize = 32;
/// Blocks of one replica's cache: 32,768 tokens, so that what is over has to make room for what is going on.
const KV_BLOCKS: usize = 512;
/// Pooled over all replicas and with nothing ever evicted, 0.93 of all prompt tokens have been seen before.
const HIT_MIN: f64 = 0.92;

#[derive(Deserialize)]
struct Session {
    session_id: String,
    messages: Vec<Value>,
}

/// The sessions, or `None` with a printed reason where this machine does not have them.
fn sessions() -> Option<Vec<Talk>> {
    let shared = std::env::var_os("PINION_SHARED").map(PathBuf::from);
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let file = shared.unwrap_or(beside).join(SESSIONS);
    let Ok(packed) = std::fs::File::open(&file) else {
        println!(
            "skipped: no {}; set PINION_SHARED to the folder that holds {SESSIONS}",
            file.display()
        );
        return None;
    };
    let mut text = String::new();
    let mut unpacked = GzDecoder::new(packed).take(SESSIONS_BYTES_MAX);
    unpacked.read_to_string(&mut text).expect("gzip of UTF-8");
    let talk = |line: &str| {
        let session: Session = serde_json::from_str(line).expect("a session in JSON");
        Talk::recorded(&session.session_id, &session.messages)
    };
    Some(text.lines().map(talk).collect())
}

async fn check(dress: Dress) {
    let Some(talks) = sessions() else { return };
    let talks = Arc::new(talks);
    let replicas = replicas(4, KV_BLOCKS).await;
    let front = Front::start(&replicas, None).await;
    let turns = play(front.listen, &talks, 0..usize::MAX, ACTIVE, dress).await;
    let wanted: usize = talks.iter().map(Talk::turns).sum();
    assert_eq!(turns.len(), wanted, "every turn is answered once");
    let served: Vec<_> = replicas.iter().map(|replica| replica.served()).collect();
    let delivered = hit(&turns);
    println!(
        "{dress:?}: delivered hit {delivered:.4} over {} turns, max/mean requests {:.2}",
        turns.len(),
        max_over_mean(&served, |served| served.requests)
    );
    assert!(
        delivered >= HIT_MIN,
        "{dress:?}: delivered hit {delivered:.4}"
    );
}

#[tokio::test]
async fn agents_with_a_session_header_find_their_prefix() {
    check(Dress::SessionHeader).await;
}

#[tokio::test]
async fn agents_with_no_id_find_their_prefix() {
    check(Dress::Bare).await;
}

#[tokio::test]
async fn a_new_request_id_on_each_turn_changes_nothing() {
    check(Dress::RequestId).await;
}

#[tokio::test]
async fn another_order_of_the_top_level_fields_changes_nothing() {
    check(Dress::FieldOrder).await;
}
