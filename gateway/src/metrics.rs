//! The only place that names metrics. Labels are replica names from the configuration, lanes of the policy up to a bound, and values of
//! closed enums, so the number of series is bounded; nothing that a client sends becomes a label.

mod labels;
mod lanes;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};
use routing_policies::Reason;
use routing_policies::lanes::LaneReason;

pub use labels::{AttemptResult, BudgetResult, Outcome, SplitBy, WishResult};
use lanes::{LaneRequests, TokenVecs};
pub use lanes::{LaneTokens, Lanes};

/// The series of a vLLM replica whose labels tell the size of its cache, one per engine.
pub const VLLM_CACHE_CONFIG: &str = "vllm:cache_config_info";
/// The label of requests that never reached a replica.
const NO_REPLICA: &str = "none";

/// Seconds from a request's arrival to a token; long prefills reach minutes.
const FIRST_TOKEN_SECONDS: &[f64] = &[
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0,
];
/// Seconds between two chunks of one answer.
const INTER_CHUNK_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0, 5.0,
];
/// Seconds of a whole request.
const REQUEST_SECONDS: &[f64] = &[
    0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0,
];

/// Tokens of reasoning in one answer.
const REASONING_TOKENS: &[f64] = &[
    0.0, 16.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16_384.0, 32_768.0,
];

/// Difficulties, from 0 to 1.
const DIFFICULTIES: &[f64] = &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// Every series of the gateway, on a registry of its own.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    attempts: IntCounterVec,
    decisions: IntCounterVec,
    session_sources: IntCounterVec,
    failures: IntCounterVec,
    tls_reloads: IntCounterVec,
    policy_reloads: IntCounterVec,
    policy_rule_errors: IntCounter,
    connections: IntGauge,
    admitted: IntGauge,
    session_pins: IntGauge,
    prefix_homes: IntGauge,
    in_flight: IntGaugeVec,
    ready: IntGaugeVec,
    breaker_open: IntGaugeVec,
    cold_starts: IntCounterVec,
    failovers: IntCounterVec,
    truncated: IntCounterVec,
    stream_errors: IntCounterVec,
    ttft: HistogramVec,
    first_content: HistogramVec,
    inter_chunk: HistogramVec,
    request: HistogramVec,
    tokens: TokenVecs,
    request_reasoning_tokens: HistogramVec,
    splits: IntCounterVec,
    budgets: IntCounterVec,
    lane_requests: Arc<LaneRequests>,
    wishes: [IntCounter; 3],
    difficulty: Histogram,
    unrouted: HashMap<&'static str, IntCounter>,
}

/// The series of one replica, looked up once at start so that a request only adds.
#[derive(Clone, Debug)]
pub struct ReplicaMetrics {
    requests: [IntCounter; 6],
    attempts: [IntCounter; 6],
    decisions: Vec<(Reason, IntCounter)>,
    /// Requests at the replica now.
    pub in_flight: IntGauge,
    /// 1 while the replica is ready.
    pub ready: IntGauge,
    /// 1 while the replica gets trials only, as its requests fail.
    pub breaker_open: IntGauge,
    /// Times that a new process was seen behind the name.
    pub cold_starts: IntCounter,
    /// Attempts that moved on from here to another candidate.
    pub failovers: IntCounter,
    /// Streams that ended in the middle.
    pub truncated: IntCounter,
    /// Streams that carried an error object.
    pub stream_errors: IntCounter,
    /// From arrival to the first token of reasoning or content, seconds.
    pub ttft: Histogram,
    /// From arrival to the first token of content, seconds.
    pub first_content: Histogram,
    /// Between two chunks that carry tokens, seconds.
    pub inter_chunk: Histogram,
    request: Histogram,
    /// Tokens, lane by lane.
    pub lanes: Arc<Lanes>,
    request_reasoning_tokens: Histogram,
    splits: [IntCounter; 4],
    budgets: [IntCounter; 6],
}

/// Registers collectors under their names; a name taken twice is a mistake in this file that its test shows.
struct Maker(Registry);

impl Maker {
    fn register<C: Collector + Clone + 'static>(&self, made: prometheus::Result<C>) -> C {
        #[expect(
            clippy::expect_used,
            reason = "the names and labels are constants of this file"
        )]
        let collector = made.expect("a metric of this file has a valid name and labels");
        #[expect(clippy::expect_used, reason = "the names are constants of this file")]
        self.0
            .register(Box::new(collector.clone()))
            .expect("a metric of this file is named once");
        collector
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.register(IntCounterVec::new(Opts::new(name, help), labels))
    }

    fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.register(IntCounter::new(name, help))
    }

    fn gauges(&self, name: &str, help: &str) -> IntGaugeVec {
        self.register(IntGaugeVec::new(Opts::new(name, help), &["replica"]))
    }

    fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.register(IntGauge::new(name, help))
    }

    fn histograms(&self, name: &str, help: &str, buckets: &[f64]) -> HistogramVec {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.register(HistogramVec::new(options, &["replica"]))
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[rustfmt::skip]
impl Metrics {
    /// A registry with every series of the gateway.
    #[must_use]
    pub fn new() -> Self {
        let make = Maker(Registry::new());
        let requests = make.counters("gateway_requests_total", "Chat requests by how they ended; replica `none` where none was reached.", &["replica", "outcome"]);
        let wishes = make.counters("gateway_wishes_total", "Requests that wish for a lane, for thinking or none, a budget or an effort, where the policy has lanes, by what became of it.", &["result"]);
        let unrouted = Outcome::ALL.map(|o| (o.as_str(), requests.with_label_values(&[NO_REPLICA, o.as_str()])));
        Self {
            unrouted: unrouted.into_iter().collect(),
            requests,
            attempts: make.counters("gateway_attempts_total", "Attempts at a replica by result; more than the requests where candidates failed.", &["replica", "result"]),
            decisions: make.counters("gateway_decisions_total", "Routing decisions by reason, at the replica that was the first candidate.", &["replica", "reason"]),
            session_sources: make.counters("gateway_session_source_total", "Where the identity of a request's session came from.", &["source"]),
            failures: make.counters("gateway_failures_total", "Errors that the gateway itself told a client, by code.", &["code"]),
            tls_reloads: make.counters("gateway_tls_reloads_total", "Certificate reloads by result.", &["result"]),
            policy_reloads: make.counters("gateway_policy_reloads_total", "Policy reloads by result.", &["result"]),
            policy_rule_errors: make.counter("gateway_policy_rule_errors_total", "Requests at which a rule of the policy could not be worked out, and so did not hold."),
            connections: make.gauge("gateway_connections", "Client connections open now."),
            admitted: make.gauge("gateway_admitted", "Chat requests admitted and not yet ended."),
            session_pins: make.gauge("gateway_session_pins", "Sessions with a remembered replica."),
            prefix_homes: make.gauge("gateway_prefix_homes", "Conversation prefixes with a remembered replica."),
            in_flight: make.gauges("gateway_in_flight", "Requests at a replica now, until the last byte of the answer or the client's leave."),
            ready: make.gauges("gateway_replica_ready", "1 while the replica takes requests."),
            breaker_open: make.gauges("gateway_replica_breaker_open", "1 while requests to the replica fail before their first byte, so that it gets one at a time, now and then."),
            cold_starts: make.counters("gateway_replica_cold_starts_total", "Times that a new process, with an empty prefix cache, was seen behind a replica's name.", &["replica"]),
            failovers: make.counters("gateway_failovers_total", "Attempts that failed before the first byte and moved on to another replica.", &["replica"]),
            truncated: make.counters("gateway_stream_truncated_total", "Streams that ended without a finish reason.", &["replica"]),
            stream_errors: make.counters("gateway_stream_errors_total", "Streams in which the replica sent an error object.", &["replica"]),
            ttft: make.histograms("gateway_ttft_seconds", "From a request's arrival to the first token, of reasoning or content.", FIRST_TOKEN_SECONDS),
            first_content: make.histograms("gateway_first_content_seconds", "From a request's arrival to the first token of content.", FIRST_TOKEN_SECONDS),
            inter_chunk: make.histograms("gateway_inter_chunk_seconds", "Between two chunks with tokens of one stream.", INTER_CHUNK_SECONDS),
            request: make.histograms("gateway_request_seconds", "From a request's arrival to the end of its answer.", REQUEST_SECONDS),
            tokens: TokenVecs {
                prompt: make.counters("gateway_prompt_tokens_total", "Prompt tokens, from the replies' usage.", &["replica", "lane"]),
                cached: make.counters("gateway_cached_tokens_total", "Prompt tokens whose KV was reused, from the replies' usage.", &["replica", "lane"]),
                predicted_cached: make.counters("gateway_predicted_cached_tokens_total", "Prompt tokens whose KV the gateway expected to be reused, of the requests that `gateway_cached_tokens_total` counts.", &["replica", "lane"]),
                missed: make.counters("gateway_missed_tokens_total", "Prompt tokens that were computed, by why they were not reused.", &["replica", "lane", "cause"]),
                completion: make.counters("gateway_completion_tokens_total", "Generated tokens, from the replies' usage.", &["replica", "lane"]),
                reasoning: make.counters("gateway_reasoning_tokens_total", "Generated tokens that were reasoning, from the replies' usage.", &["replica", "lane"]),
            },
            request_reasoning_tokens: make.histograms("gateway_request_reasoning_tokens", "Tokens of reasoning of one answer: the replica's count, else the share of the reasoning in the answer's text.", REASONING_TOKENS),
            splits: make.counters("gateway_reasoning_splits_total", "Answers by who split reasoning off their text, or why nobody did.", &["replica", "by"]),
            budgets: make.counters("gateway_thinking_budgets_total", "Budgets of thinking, of the client's or the policy's, by what became of them.", &["replica", "result"]),
            lane_requests: Arc::new(LaneRequests::new(make.counters("gateway_lane_requests_total", "Requests by lane and why they take it.", &["lane", "reason"]))),
            wishes: WishResult::ALL.map(|r| wishes.with_label_values(&[r.as_str()])),
            difficulty: make.register(Histogram::with_opts(HistogramOpts::new("gateway_difficulty", "How much thinking turns are worth, of those at which a rule asked.").buckets(DIFFICULTIES.to_vec()))),
            registry: make.0,
        }
    }

    /// The series of one replica, all present from the start with 0.
    #[must_use]
    pub fn replica(&self, name: &str) -> ReplicaMetrics {
        let label = &[name];
        ReplicaMetrics {
            requests: Outcome::ALL.map(|o| self.requests.with_label_values(&[name, o.as_str()])),
            attempts: AttemptResult::ALL.map(|r| self.attempts.with_label_values(&[name, r.as_str()])),
            decisions: Reason::ALL.map(|r| (r, self.decisions.with_label_values(&[name, r.as_str()]))).into(),
            in_flight: self.in_flight.with_label_values(label),
            ready: self.ready.with_label_values(label),
            breaker_open: self.breaker_open.with_label_values(label),
            cold_starts: self.cold_starts.with_label_values(label),
            failovers: self.failovers.with_label_values(label),
            truncated: self.truncated.with_label_values(label),
            stream_errors: self.stream_errors.with_label_values(label),
            ttft: self.ttft.with_label_values(label),
            first_content: self.first_content.with_label_values(label),
            inter_chunk: self.inter_chunk.with_label_values(label),
            request: self.request.with_label_values(label),
            request_reasoning_tokens: self.request_reasoning_tokens.with_label_values(label),
            budgets: BudgetResult::ALL.map(|r| self.budgets.with_label_values(&[name, r.as_str()])),
            splits: SplitBy::ALL.map(|by| self.splits.with_label_values(&[name, by.as_str()])),
            lanes: Arc::new(Lanes::new(&self.tokens, name)),
        }
    }
}

impl Metrics {
    /// Counts a request that ended without having reached a replica.
    pub fn unrouted(&self, outcome: Outcome) {
        if let Some(counter) = self.unrouted.get(outcome.as_str()) {
            counter.inc();
        }
    }

    /// Counts a decision that found no candidate.
    pub fn no_candidate(&self, reason: Reason) {
        self.decisions
            .with_label_values(&[NO_REPLICA, reason.as_str()])
            .inc();
    }

    /// Counts where a session's identity came from.
    pub fn session_source(&self, source: &'static str) {
        self.session_sources.with_label_values(&[source]).inc();
    }

    /// Counts an error that the gateway told a client.
    pub fn failure(&self, code: &'static str) {
        self.failures.with_label_values(&[code]).inc();
    }

    /// Counts a certificate reload.
    pub fn tls_reload(&self, ok: bool) {
        self.tls_reloads
            .with_label_values(&[if ok { "ok" } else { "kept_old" }])
            .inc();
    }

    /// Counts a policy reload.
    pub fn policy_reload(&self, ok: bool) {
        self.policy_reloads
            .with_label_values(&[if ok { "ok" } else { "kept_old" }])
            .inc();
    }

    /// Counts a request at which a rule could not be worked out.
    pub fn policy_rule_error(&self) {
        self.policy_rule_errors.inc();
    }

    /// Counts a request of this lane.
    pub fn lane(&self, lane: &Arc<str>, reason: LaneReason) {
        self.lane_requests.count(lane, reason);
    }

    /// Counts a client's wish.
    pub fn wish(&self, result: WishResult) {
        self.wishes[result as usize].inc();
    }

    /// Notes how difficult a turn is.
    pub fn difficulty(&self, difficulty: f64) {
        self.difficulty.observe(difficulty);
    }

    /// The gauge of open client connections.
    #[must_use]
    pub fn connections(&self) -> &IntGauge {
        &self.connections
    }

    /// The gauge of admitted requests.
    #[must_use]
    pub fn admitted(&self) -> &IntGauge {
        &self.admitted
    }

    /// Sets how much the gateway remembers: sessions and prefixes.
    pub fn remembered(&self, sessions: usize, prefixes: usize) {
        self.session_pins
            .set(i64::try_from(sessions).unwrap_or(i64::MAX));
        self.prefix_homes
            .set(i64::try_from(prefixes).unwrap_or(i64::MAX));
    }

    /// Everything in Prometheus text format.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        // Writing to memory fails only for a metric without a name, which registration refuses.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

impl ReplicaMetrics {
    /// Counts a request that ended, with the time since its arrival.
    pub fn ended(&self, outcome: Outcome, took: Duration) {
        self.requests[outcome as usize].inc();
        self.request.observe(took.as_secs_f64());
    }

    /// Counts a decision whose first candidate this is.
    pub fn decision(&self, reason: Reason) {
        if let Some((_, counter)) = self.decisions.iter().find(|(known, _)| *known == reason) {
            counter.inc();
        }
    }

    /// Counts who split an answer.
    pub fn split(&self, by: SplitBy) {
        self.splits[by as usize].inc();
    }

    /// Counts what became of a budget.
    pub fn budget(&self, result: BudgetResult) {
        self.budgets[result as usize].inc();
    }

    /// Notes an answer's tokens of reasoning.
    pub fn thought(&self, tokens: u64) {
        #[expect(clippy::cast_precision_loss, reason = "no answer has 2^52 tokens")]
        self.request_reasoning_tokens.observe(tokens as f64);
    }

    /// Counts an attempt.
    pub fn attempt(&self, result: AttemptResult) {
        self.attempts[result as usize].inc();
    }
}

#[cfg(test)]
mod tests;
