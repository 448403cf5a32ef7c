//! Plays many conversations at once: each turn is sent when the one before it is answered, in the order in which turns come up.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use system_tests::{
    client::{Answered, Client},
    scripted::{Scripted, Served, Setup},
};
use tokio::{task::JoinSet, time::Instant};

use crate::talk::{Dress, Talk};

/// Requests in flight at one time.
const CONNECTIONS: usize = 8;

/// One answered turn.
pub(crate) struct Turn {
    /// The conversation's place in the list.
    pub(crate) talk: usize,
    /// The answer.
    pub(crate) answered: Answered,
    /// From the request to the end of its answer.
    pub(crate) took: Duration,
}

/// Turns that are due, and conversations that have not begun.
struct Deck {
    due: VecDeque<(usize, usize)>,
    waiting: VecDeque<usize>,
    sent: u64,
}

/// Plays `turns` of each of `talks`, `active` of them at a time, and gives all answers in the order in which they came.
pub(crate) async fn play(
    addr: SocketAddr,
    talks: &Arc<Vec<Talk>>,
    turns: std::ops::Range<usize>,
    active: usize,
    dress: Dress,
) -> Vec<Turn> {
    let mut waiting: VecDeque<usize> = (0..talks.len())
        .filter(|talk| talks[*talk].turns() > turns.start)
        .collect();
    let first = waiting.drain(..active.min(waiting.len()));
    let due = first.map(|talk| (talk, turns.start)).collect();
    let deck = Arc::new(Mutex::new(Deck {
        due,
        waiting,
        sent: 0,
    }));
    let answers = Arc::new(Mutex::new(Vec::new()));
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (talks, deck, answers) = (talks.clone(), deck.clone(), answers.clone());
        let (start, end) = (turns.start, turns.end);
        connections.spawn(async move {
            let mut client = Client::new(addr);
            loop {
                let Some((talk, turn, number)) = next(&deck) else {
                    return;
                };
                let (headers, body) = talks[talk].request(turn, dress, number);
                let headers: Vec<_> = headers.iter().map(|(k, v)| (*k, v.as_str())).collect();
                let sent = Instant::now();
                let answered = client.chat(&headers, body).await;
                let took = sent.elapsed();
                answers.lock().expect("no holder panics").push(Turn {
                    talk,
                    answered,
                    took,
                });
                let more = turn + 1 < talks[talk].turns().min(end);
                go_on(&deck, more.then_some((talk, turn + 1)), start);
            }
        });
    }
    while let Some(ended) = connections.join_next().await {
        ended.expect("a connection that met no failure");
    }
    std::mem::take(&mut answers.lock().expect("no holder panics"))
}

fn next(deck: &Mutex<Deck>) -> Option<(usize, usize, u64)> {
    let mut deck = deck.lock().expect("no holder panics");
    let (talk, turn) = deck.due.pop_front()?;
    deck.sent += 1;
    Some((talk, turn, deck.sent))
}

/// The conversation's next turn is due; where it has none, another conversation begins.
fn go_on(deck: &Mutex<Deck>, turn: Option<(usize, usize)>, first_turn: usize) {
    let mut deck = deck.lock().expect("no holder panics");
    let due = turn.or_else(|| Some((deck.waiting.pop_front()?, first_turn)));
    deck.due.extend(due);
}

/// `count` replicas with caches of `kv_blocks` blocks that take no time.
pub(crate) async fn replicas(count: usize, kv_blocks: usize) -> Vec<Scripted> {
    let setup = Setup {
        kv_blocks,
        prefill_per_1000: Duration::ZERO,
    };
    let mut replicas = Vec::with_capacity(count);
    for _ in 0..count {
        replicas.push(Scripted::start(setup).await);
    }
    replicas
}

/// The share of all prompt tokens that was cached.
pub(crate) fn hit(turns: &[Turn]) -> f64 {
    let sum = |count: fn(&Answered) -> u64| turns.iter().map(|t| count(&t.answered)).sum::<u64>();
    sum(|a| a.cached_tokens) as f64 / sum(|a| a.prompt_tokens).max(1) as f64
}

/// The largest of the replicas' `count`s over their mean: 1.0 is even.
pub(crate) fn max_over_mean(served: &[Served], count: impl Fn(&Served) -> u64) -> f64 {
    let counts: Vec<u64> = served.iter().map(count).collect();
    let max = counts.iter().max().copied().unwrap_or(0);
    let mean = counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64;
    max as f64 / mean.max(f64::MIN_POSITIVE)
}

/// The time within which `share` of the turns were answered.
pub(crate) fn within(turns: &[Turn], share: f64) -> Duration {
    let mut took: Vec<Duration> = turns.iter().map(|turn| turn.took).collect();
    took.sort_unstable();
    let at = (took.len() as f64 * share).ceil() as usize;
    took.get(at.saturating_sub(1)).copied().unwrap_or_default()
}
