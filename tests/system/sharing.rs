//! Eight interleaved conversations on two replicas: each stays put, both work, and the books agree.

use system_tests::{
    assets,
    fleet::{self, Fleet},
    prom,
};

use crate::support::{Conversation, guide};

const CONVERSATIONS: usize = 8;
const QUESTIONS: [&str; 3] = [
    "What opens first?",
    "And what closes last?",
    "Where is the tea house?",
];

#[tokio::test]
async fn interleaved_conversations_share_the_replicas_and_the_books_agree() {
    let fleet = Fleet::up(&assets::builtin(), 2).await;
    let mut talks: Vec<_> = (0..CONVERSATIONS)
        .map(|i| {
            let session = format!("s-{i}");
            Conversation::new(
                &guide(&format!("Town{i}"))[..600],
                (i % 2 == 0).then_some(&session),
            )
        })
        .collect();
    let mut homes = vec![String::new(); CONVERSATIONS];
    let (mut told_cached, mut told_prompt) = (0, 0);
    for question in QUESTIONS {
        for (talk, home) in talks.iter_mut().zip(&mut homes) {
            let turn = talk.turn(&fleet, question).await;
            if home.is_empty() {
                *home = turn.replica.clone();
            }
            assert_eq!(*home, turn.replica, "a conversation stays put");
            told_cached += turn.cached_tokens;
            told_prompt += turn.prompt_tokens;
        }
    }

    let replicas = fleet.replicas();
    for replica in &replicas {
        let here = homes.iter().filter(|h| **h == replica.name).count();
        assert!(
            (2..=CONVERSATIONS - 2).contains(&here),
            "load is shared: {homes:?}"
        );
    }
    let (mut hits, mut queries) = (0.0, 0.0);
    for replica in &replicas {
        let text = fleet::text(replica.listen, "/metrics").await;
        let replica_hits = prom::sum(&text, "vllm:prefix_cache_hits_total", &[]);
        hits += replica_hits;
        queries += prom::sum(&text, "vllm:prefix_cache_queries_total", &[]);
        let label = format!("replica=\"{}\"", replica.name);
        let seen = prom::sum(
            &fleet.metrics().await,
            "gateway_cached_tokens_total",
            &[&label],
        );
        assert_eq!(
            seen, replica_hits,
            "gateway and {} count the same hits",
            replica.name
        );
    }
    assert_eq!(
        hits, told_cached as f64,
        "the replicas' hits add up to what clients were told"
    );
    assert_eq!(queries, told_prompt as f64, "and so do the prompt tokens");
    assert!(told_cached > 0);
}
