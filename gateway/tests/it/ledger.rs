//! What the gateway predicts of caches, against replicas that really keep one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};

use routing_policies::placement::{Block, Lru};
use serde_json::Value;

use crate::fleet::{Fleet, told};
use crate::replica::{Got, STOP, Scripted, Step, stream};

/// The engines' blocks.
const BLOCK_TOKENS: usize = 16;
/// The engines' tokenizer.
const BYTES_PER_TOKEN: usize = 3;
pub(crate) const CACHE_TOKENS: u64 = 1_000_000;

/// A replica with an LRU cache of prompts.
#[derive(Clone)]
pub(crate) struct Caching {
    cache: Arc<Mutex<Lru>>,
}

impl Caching {
    pub(crate) fn new(tokens: u64) -> Self {
        Self {
            cache: Arc::new(Mutex::new(Lru::new(tokens))),
        }
    }

    pub(crate) fn scripted(&self, name: &'static str) -> Scripted {
        let caching = self.clone();
        Scripted::reading(name, move |_, got| caching.answer(got))
    }

    /// A short stream with the usage that the cache makes.
    fn answer(&self, got: &Got) -> Vec<Step> {
        let body: Value = serde_json::from_str(&got.body).unwrap();
        let tools = body["tools"].to_string();
        let mut text = if body["tools"].is_null() {
            String::new()
        } else {
            tools
        };
        for message in body["messages"].as_array().unwrap() {
            text += &format!("<{}>{}", message["role"], message["content"]);
        }
        let tokens = text.len() / BYTES_PER_TOKEN;
        let mut hash = DefaultHasher::new();
        let whole = text.as_bytes().chunks_exact(BLOCK_TOKENS * BYTES_PER_TOKEN);
        let blocks: Vec<Block> = whole
            .map(|bytes| {
                bytes.hash(&mut hash);
                Block {
                    key: hash.finish(),
                    tokens: BLOCK_TOKENS as u32,
                }
            })
            .collect();
        let mut cache = self.cache.lock().unwrap();
        let cached = cache.held_tokens(&blocks).min(tokens as u64 - 1);
        cache.insert(&blocks, |_, _| ());
        let usage = format!(
            r#"{{"choices":[],"usage":{{"prompt_tokens":{tokens},"completion_tokens":1,"prompt_tokens_details":{{"cached_tokens":{cached}}}}}}}"#
        );
        stream(&[
            r#"{"choices":[{"index":0,"delta":{"content":"ok"}}]}"#,
            STOP,
            &usage,
            "[DONE]",
        ])
    }

    fn evict_all(&self) {
        let mut cache = self.cache.lock().unwrap();
        *cache = Lru::new(cache.capacity());
    }
}

/// One conversation of long messages.
#[derive(Clone)]
pub(crate) struct Talk {
    session: usize,
    turns: usize,
}

impl Talk {
    pub(crate) fn new(session: usize) -> Self {
        Self { session, turns: 0 }
    }

    /// The body of the next turn.
    pub(crate) fn next(&mut self) -> String {
        self.turns += 1;
        let mut messages = vec![format!(
            r#"{{"role":"system","content":"{}"}}"#,
            "You help sailors. ".repeat(150)
        )];
        for turn in 0..self.turns {
            let words = format!("harbour {} {turn} ", self.session).repeat(100);
            messages.push(format!(r#"{{"role":"user","content":"{words}"}}"#));
            if turn + 1 < self.turns {
                messages.push(r#"{"role":"assistant","content":"ok"}"#.into());
            }
        }
        format!(
            r#"{{"model":"m","stream":true,"messages":[{}]}}"#,
            messages.join(",")
        )
    }
}

struct Live {
    fleet: Fleet,
    caches: Vec<Caching>,
    talks: Vec<Talk>,
}

impl Live {
    /// Two replicas whose caches hold `tokens`, as they say, and twelve conversations.
    fn new(tokens: u64) -> Self {
        let caches = vec![Caching::new(tokens), Caching::new(tokens)];
        let fleet = Fleet::new(vec![caches[0].scripted("a"), caches[1].scripted("b")]);
        let live = Self {
            fleet,
            caches,
            talks: (0..12).map(Talk::new).collect(),
        };
        for replica in live.fleet.known.fleet.replicas() {
            let told = gateway::state::replicas::Told {
                cache_tokens: tokens,
                ..told("first")
            };
            replica.on_probe_ok(told);
        }
        live
    }

    /// `count` turns, the conversations one after another.
    async fn turns(&mut self, count: usize) {
        for turn in 0..count {
            let talk = turn % self.talks.len();
            let body = self.talks[talk].next();
            let answer = self.fleet.ask(&[], &body).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
    }

    /// Predicted, delivered and prompt tokens so far, of all replicas.
    fn counted(&self) -> [f64; 3] {
        ["predicted_cached", "cached", "prompt"].map(|what| {
            let of = |name| {
                self.fleet.metric(&format!(
                    "gateway_{what}_tokens_total{{lane=\"\",replica=\"{name}\"}}"
                ))
            };
            of("a") + of("b")
        })
    }

    fn errors(&self) -> Vec<f64> {
        let state: Value = serde_json::from_slice(&self.fleet.known.describe(false)).unwrap();
        let replicas = state["replicas"].as_array().unwrap();
        replicas
            .iter()
            .map(|r| r["prediction_error"].as_f64().unwrap())
            .collect()
    }

    fn missed(&self, cause: &str) -> f64 {
        let of = |name| {
            self.fleet.metric(&format!(
                "gateway_missed_tokens_total{{cause=\"{cause}\",lane=\"\",replica=\"{name}\"}}"
            ))
        };
        of("a") + of("b")
    }

    /// After twenty requests predictions are right to 2 % of the prompts' tokens, in sum and request by request.
    async fn check_comes_right(&mut self) {
        self.turns(20).await;
        let before = self.counted();
        self.turns(24).await;
        let after = self.counted();
        let [predicted, cached, prompt] = [0, 1, 2].map(|i| after[i] - before[i]);
        let off = (predicted - cached).abs() / prompt;
        assert!(
            off < 0.02,
            "predicted {predicted}, delivered {cached} of {prompt}"
        );
        assert!(cached > 0.0, "some of it was cached");
        for error in self.errors() {
            assert!(error < 0.02, "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn predictions_are_right_to_two_percent() {
    let mut live = Live::new(CACHE_TOKENS);
    live.turns(36).await;
    live.check_comes_right().await;
    let [predicted, ..] = live.counted();
    assert!(predicted > 10_000.0, "{predicted}");
}

#[tokio::test(start_paused = true)]
async fn predictions_come_right_after_an_eviction() {
    let mut live = Live::new(CACHE_TOKENS);
    live.turns(36).await;
    live.caches.iter().for_each(Caching::evict_all);
    live.check_comes_right().await;
    assert!(live.missed("evicted") > 0.0);
    assert!(live.missed("restarted") < 1.0);
}

#[tokio::test(start_paused = true)]
async fn predictions_come_right_after_a_restart() {
    let mut live = Live::new(CACHE_TOKENS);
    live.turns(36).await;
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let prompts = |name| {
        live.fleet.metric(&format!(
            "gateway_prompt_tokens_total{{lane=\"\",replica=\"{name}\"}}"
        ))
    };
    let busier = usize::from(prompts("b") > prompts("a"));
    live.caches[busier].evict_all();
    live.fleet.known.fleet.replicas()[busier].on_probe_ok(told("second"));
    live.check_comes_right().await;
    assert!(live.missed("restarted") > 0.0);
    assert!(
        live.missed("evicted") < 1.0,
        "a restart is seen, not found out"
    );
}

#[tokio::test(start_paused = true)]
async fn predictions_come_right_when_the_caches_are_full() {
    // Room for about half of what the conversations grow to.
    let mut live = Live::new(60_000);
    live.turns(12 * 6).await;
    live.check_comes_right().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_before_the_first_token_leaves_no_belief() {
    let silent = Scripted::new("a", |_| vec![crate::replica::stream_head(), Step::Hang]);
    let fleet = Fleet::new(vec![silent]);
    let mut talk = Talk::new(0);
    let response = fleet.open(&[], &talk.next()).await;
    let believed = || {
        let state: Value = serde_json::from_slice(&fleet.known.describe(false)).unwrap();
        state["replicas"][0]["believed_tokens"].as_u64().unwrap()
    };
    assert!(believed() > 0, "the replica is on it");
    drop(response);
    assert_eq!(believed(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_restarted_replica_has_its_pins_forgotten() {
    let fleet = Fleet::new(vec![Scripted::well("a"), Scripted::well("b")]);
    let header = [("x-session-id", "s")];
    let body = Talk::new(0).next();
    let first = fleet.ask(&header, &body).await;
    assert_eq!(fleet.ask(&header, &body).await.reason(), "pin_held");
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let home = usize::from(first.replica() == "b");
    fleet.known.fleet.replicas()[home].on_probe_ok(told("second"));
    assert_eq!(fleet.ask(&header, &body).await.reason(), "session_home");
}
