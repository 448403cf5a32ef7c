//! How the gateway learns what a replica's cache holds.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::fleet::Fleet;
use crate::replica::{Reach, Scripted};

const METRICS: &str = "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"1000\"} 1.0\n";

#[tokio::test(start_paused = true)]
async fn a_replica_whose_health_does_not_tell_is_asked_for_its_metrics_once_per_start() {
    let mut told = Scripted::well("told");
    told.metrics = METRICS;
    let fleet = Fleet::new(vec![told, Scripted::well("silent")]);
    let cache_tokens = |index: usize| {
        let state = fleet.known.describe(false);
        let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
        state["replicas"][index]["cache_tokens"].as_u64().unwrap()
    };
    let asked = |index: usize| fleet.replicas[index].metrics_asked.load(Ordering::Relaxed);
    fleet.probe();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!((cache_tokens(0), cache_tokens(1)), (16_000, 262_144));
    assert_eq!((asked(0), asked(1)), (1, 1));
    fleet.replicas[0].reach(Reach::Refused);
    tokio::time::sleep(Duration::from_secs(10)).await;
    fleet.replicas[0].reach(Reach::Open);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((cache_tokens(0), cache_tokens(1)), (16_000, 262_144));
    assert_eq!((asked(0), asked(1)), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_look_at_the_metrics_that_fails_is_made_again_less_and_less_often() {
    let mut slow = Scripted::well("slow");
    slow.metrics = METRICS;
    slow.metrics_fail = 4;
    let mut making = Scripted::well("making");
    making.metrics = "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"None\"} 1.0\n";
    let fleet = Fleet::new(vec![slow, making]);
    let cache_tokens = || {
        let state = fleet.known.describe(false);
        let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
        state["replicas"][0]["cache_tokens"].as_u64().unwrap()
    };
    let asked = |index: usize| fleet.replicas[index].metrics_asked.load(Ordering::Relaxed);
    fleet.probe();
    let mut seen = Vec::new();
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let count = asked(0);
        if seen.len() < count {
            seen.resize(count, 0);
        }
        assert_eq!(cache_tokens() == 16_000, count > 4 && seen[4] == 1);
        if let Some(last) = seen.last_mut() {
            *last = 1;
        }
    }
    assert_eq!((asked(0), cache_tokens()), (5, 16_000));
    tokio::time::sleep(Duration::from_secs(400)).await;
    // 1, 2, 4, … 64 probes apart.
    assert!((9..=14).contains(&asked(1)), "{}", asked(1));
}
