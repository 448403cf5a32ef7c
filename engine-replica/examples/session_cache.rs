//! What hints about sessions are worth: recorded agent sessions against the replica's own scheduler and cache, with a
//! cost model in place of a model.
//!
//! `zcat taubench_airline_messages.jsonl.gz | cargo run --profile checked -p engine-replica --example session_cache`
//!
//! Input: one JSON object a line with `messages` in OpenAI's form. Each assistant message is one turn: everything before
//! it is the prompt, it is the answer, four bytes are a token. Arrivals and pauses are drawn (the recordings have none):
//! a tool takes a log-normal time whose median hangs on its name, a user answers in about half a minute. With hints the
//! gateway's part is played too: it names the session, says after a tool call that its KV is worth keeping for as long
//! as 95 % of that tool's calls take, and releases the session at its end.
#![expect(clippy::print_stdout, reason = "its purpose")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::error::Error;
use std::io::BufRead;
use std::sync::Arc;

use replica_core::BLOCK_TOKENS;
use replica_core::block_key::KeyMaker;
use replica_core::lease::{KvCache, blocks_for};
use replica_core::plan::{PlanLimits, Scheduler};
use replica_core::sequence::Terms;
use serde_json::Value;

/// Microseconds of a step besides its tokens, of a computed prompt token, and of a decoded one.
const STEP_US: u64 = 8_000;
const PREFILL_US: u64 = 50;
const DECODE_US: u64 = 150;
const LIMITS: PlanLimits = PlanLimits {
    running_max: 32,
    step_tokens: 512,
    output_room: 128,
};
/// Mean time between the starts of two sessions.
const START_EVERY_US: f64 = 3e6;
const USER_MEDIAN_US: f64 = 30e6;
const TOOL_MEDIANS_US: [f64; 4] = [0.5e6, 2e6, 8e6, 20e6];
const SPREAD: f64 = 0.8;
/// Standard deviations above the median below which 95 % of the pauses lie.
const HINT_DEVIATIONS: f64 = 1.645;
const SEEDS: u64 = 5;
const KEPT_PERCENT: usize = 50;

struct Turn {
    /// Tokens of the session that are its prompt; its answer goes on to `answer_end`.
    prompt_end: usize,
    answer_end: usize,
    /// The tool that it calls, if it calls one.
    tool: Option<String>,
}

struct Session {
    tokens: Vec<u32>,
    turns: Vec<Turn>,
}

fn read_session(line: &str) -> Result<Session, Box<dyn Error>> {
    let recorded: Value = serde_json::from_str(line)?;
    let (mut tokens, mut turns) = (Vec::new(), Vec::new());
    for message in recorded["messages"].as_array().into_iter().flatten() {
        let prompt_end = tokens.len();
        let calls = &message["tool_calls"];
        let content = message["content"].as_str().unwrap_or_default();
        let text = format!("{}\n{content}\n{calls}", message["role"]);
        tokens.extend(text.as_bytes().chunks(4).map(|chunk| {
            let mut token = [0; 4];
            token[..chunk.len()].copy_from_slice(chunk);
            u32::from_le_bytes(token)
        }));
        if message["role"] == "assistant" && prompt_end > 0 {
            let tool = calls[0]["function"]["name"].as_str().map(str::to_owned);
            turns.push(Turn {
                prompt_end,
                answer_end: tokens.len(),
                tool,
            });
        }
    }
    Ok(Session { tokens, turns })
}

/// Xorshift: the same run for the same seed.
struct Random(u64);

impl Random {
    /// Above 0, at most 1.
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (a, b) = (self.uniform(), self.uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

/// When every session starts and how long each pause lasts, drawn before the run so that all runs have the same.
struct Times {
    starts_us: Vec<u64>,
    /// After each turn of each session.
    pauses_us: Vec<Vec<u64>>,
}

fn median_us(turn: &Turn) -> f64 {
    match &turn.tool {
        None => USER_MEDIAN_US,
        Some(name) => {
            let sum: usize = name.bytes().map(usize::from).sum();
            TOOL_MEDIANS_US[sum % TOOL_MEDIANS_US.len()]
        }
    }
}

fn times(sessions: &[Session], seed: u64) -> Times {
    let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ seed);
    (0..10).for_each(|_| _ = random.uniform());
    let mut now = 0.0;
    let mut starts_us = Vec::new();
    let mut pauses_us = Vec::new();
    for session in sessions {
        now -= random.uniform().ln() * START_EVERY_US;
        starts_us.push(now as u64);
        let pause = |turn| (median_us(turn) * (SPREAD * random.normal()).exp()) as u64;
        pauses_us.push(session.turns.iter().map(pause).collect());
    }
    Times {
        starts_us,
        pauses_us,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Hints {
    Off,
    Release,
    Keep,
    Both,
}

#[derive(Default)]
struct Seen {
    prompt_tokens: u64,
    cached_tokens: u64,
    ttft_us: Vec<u64>,
    evicted: [u64; 4],
    preemptions: u64,
    /// Most blocks that the contexts of all living sessions took together.
    working_set: usize,
}

struct Live {
    session: usize,
    turn: usize,
    arrived_us: u64,
    generated: usize,
}

struct Run<'a> {
    sessions: &'a [Session],
    times: &'a Times,
    hints: Hints,
    scheduler: Scheduler,
    /// Turns to come: time, session, turn.
    due: BinaryHeap<Reverse<(u64, usize, usize)>>,
    live: BTreeMap<u64, Live>,
    id_next: u64,
    now_us: u64,
    seen: Seen,
    /// Contexts of living sessions, in blocks.
    contexts: BTreeMap<usize, usize>,
}

fn name(session: usize) -> Arc<str> {
    format!("session-{session}").into()
}

impl<'a> Run<'a> {
    fn new(sessions: &'a [Session], times: &'a Times, hints: Hints, blocks: usize) -> Self {
        let mut kv = KvCache::new(blocks, KeyMaker::new("example"), true);
        kv.set_kept_max(blocks * KEPT_PERCENT / 100);
        let starts = times.starts_us.iter().enumerate();
        Self {
            sessions,
            times,
            hints,
            scheduler: Scheduler::new(LIMITS, kv),
            due: starts.map(|(i, &at)| Reverse((at, i, 0))).collect(),
            live: BTreeMap::new(),
            id_next: 0,
            now_us: 0,
            seen: Seen::default(),
            contexts: BTreeMap::new(),
        }
    }

    fn run(mut self) -> Seen {
        loop {
            while let Some(&Reverse((at, session, turn))) = self.due.peek()
                && at <= self.now_us
            {
                self.due.pop();
                self.submit(at, session, turn);
            }
            self.scheduler.advance(self.now_us / 1000);
            if !self.step() {
                match self.due.peek() {
                    Some(&Reverse((at, ..))) => self.now_us = at,
                    None => break,
                }
            }
        }
        self.seen.evicted = self.scheduler.kv().pool().evicted();
        self.seen.preemptions = self.scheduler.preemptions();
        self.seen
    }

    fn submit(&mut self, arrived_us: u64, session: usize, turn: usize) {
        let recorded = &self.sessions[session];
        let part = &recorded.turns[turn];
        let id = self.id_next;
        self.id_next += 1;
        let terms = Terms {
            session: (self.hints != Hints::Off).then(|| name(session)),
            output_max: part.answer_end - part.prompt_end,
            ..Terms::default()
        };
        let prompt = recorded.tokens[..part.prompt_end].to_vec();
        self.scheduler.submit(id, prompt, terms);
        let (generated, live) = (0, &mut self.live);
        live.insert(
            id,
            Live {
                session,
                turn,
                arrived_us,
                generated,
            },
        );
        self.contexts.insert(session, blocks_for(part.answer_end));
        let set = self.contexts.values().sum();
        self.seen.working_set = self.seen.working_set.max(set);
    }

    /// False when there is nothing to do.
    fn step(&mut self) -> bool {
        let plan = self.scheduler.plan(|_| true);
        if plan.slices.is_empty() {
            return false;
        }
        for admission in &plan.admitted {
            self.seen.prompt_tokens += admission.prompt_tokens as u64;
            self.seen.cached_tokens += admission.cached_tokens as u64;
        }
        let decodes = plan.slices.iter().filter(|s| s.positions.len() == 1);
        let decodes = decodes.count() as u64;
        let prefill = plan.tokens() as u64 - decodes;
        self.now_us += STEP_US + prefill * PREFILL_US + decodes * DECODE_US;
        self.scheduler.advance(self.now_us / 1000);
        self.scheduler.complete(&plan);
        for slice in plan.slices.iter().filter(|slice| slice.wants_logits) {
            self.take_token(slice.id);
        }
        true
    }

    fn take_token(&mut self, id: u64) {
        let Some(live) = self.live.get_mut(&id) else {
            return;
        };
        let recorded = &self.sessions[live.session];
        let turn = &recorded.turns[live.turn];
        if live.generated == 0 {
            self.seen.ttft_us.push(self.now_us - live.arrived_us);
        }
        let token = recorded.tokens[turn.prompt_end + live.generated];
        live.generated += 1;
        self.scheduler.push_token(id, token);
        if turn.prompt_end + live.generated < turn.answer_end {
            return;
        }
        let (session, number) = (live.session, live.turn);
        self.scheduler.remove(id);
        self.live.remove(&id);
        if number + 1 < recorded.turns.len() {
            let pause = self.times.pauses_us[session][number];
            let next = (self.now_us + pause, session, number + 1);
            self.due.push(Reverse(next));
            if turn.tool.is_some() && matches!(self.hints, Hints::Keep | Hints::Both) {
                let keep_us = median_us(turn) * (SPREAD * HINT_DEVIATIONS).exp();
                self.scheduler.keep(&name(session), (keep_us / 1e3) as u64);
            }
        } else {
            self.contexts.remove(&session);
            if matches!(self.hints, Hints::Release | Hints::Both) {
                self.scheduler.release(&name(session));
            }
        }
    }
}

fn percentile(sorted: &[u64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted
        .get(at.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0) as f64
        / 1e3
}

fn main() -> Result<(), Box<dyn Error>> {
    let lines: Result<Vec<_>, _> = std::io::stdin().lock().lines().collect();
    let sessions: Result<Vec<_>, _> = lines?.iter().map(|line| read_session(line)).collect();
    let sessions: Vec<_> = sessions?
        .into_iter()
        .filter(|s| !s.turns.is_empty())
        .collect();
    let tools: BTreeSet<_> = sessions
        .iter()
        .flat_map(|s| &s.turns)
        .filter_map(|t| t.tool.as_ref())
        .collect();
    let largest = sessions
        .iter()
        .map(|s| blocks_for(s.tokens.len()))
        .max()
        .unwrap_or(1);
    println!(
        "{} sessions, {} tools, {SEEDS} drawings of the times\n",
        sessions.len(),
        tools.len()
    );
    println!(
        "| cache | hints | hits | TTFT p50 | TTFT p90 | blocks lost: released, expired, plain, kept | preemptions |"
    );
    println!("|---|---|---|---|---|---|---|");
    // So large that nothing is evicted: only its working set is wanted.
    let total: usize = sessions.iter().map(|s| blocks_for(s.tokens.len())).sum();
    let drawn: Vec<_> = (1..=SEEDS)
        .map(|seed| times(&sessions, seed))
        .map(|times| {
            let free = Run::new(&sessions, &times, Hints::Off, total).run();
            (times, free.working_set)
        })
        .collect();
    for percent in [25, 50] {
        for (label, hints) in [
            ("off: plain LRU", Hints::Off),
            ("releases", Hints::Release),
            ("keeps", Hints::Keep),
            ("both", Hints::Both),
        ] {
            let mut all = Seen::default();
            let mut blocks = 0;
            for (times, working_set) in &drawn {
                blocks = (working_set * percent / 100).max(largest);
                let seen = Run::new(&sessions, times, hints, blocks).run();
                all.prompt_tokens += seen.prompt_tokens;
                all.cached_tokens += seen.cached_tokens;
                all.ttft_us.extend(seen.ttft_us);
                all.preemptions += seen.preemptions;
                for (sum, more) in all.evicted.iter_mut().zip(seen.evicted) {
                    *sum += more;
                }
            }
            all.ttft_us.sort_unstable();
            let hits = 100.0 * all.cached_tokens as f64 / all.prompt_tokens as f64;
            let (p50, p90) = (percentile(&all.ttft_us, 0.5), percentile(&all.ttft_us, 0.9));
            println!(
                "| {percent} % ({} tokens) | {label} | {hits:.1} % | {p50:.0} ms | {p90:.0} ms | {:?} | {} |",
                blocks * BLOCK_TOKENS,
                all.evicted,
                all.preemptions,
            );
        }
    }
    Ok(())
}
