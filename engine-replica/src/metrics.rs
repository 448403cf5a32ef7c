//! What the replica counts, under the names that vLLM's dashboards read where vLLM has the thing.
//!
//! The only place where metric names appear (A6); `METRICS.md` is checked against it by a test.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus::{
    Gauge, GaugeVec, Histogram, IntCounter, IntCounterVec, IntGauge, Registry, TextEncoder,
};

use replica_core::eviction::Standing;

use crate::engine::job::FinishReason;
use crate::engine::stats::EngineStats;
use crate::model::ExpertLoad;

mod experts;
mod make;
#[cfg(test)]
mod tests;

use experts::ExpertSeries;
use make::Maker;

/// Seconds to a first token: from a warm short prompt to a cold long one on a CPU.
const TTFT_SECONDS: &[f64] = &[
    0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.3, 0.6, 1.2, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0,
];
/// Seconds between two tokens.
const INTER_TOKEN_SECONDS: &[f64] = &[
    0.002, 0.004, 0.008, 0.015, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4,
];
/// Seconds of a whole request.
const REQUEST_SECONDS: &[f64] = &[
    0.05, 0.1, 0.3, 0.6, 1.2, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0,
];

/// How a request that the engine took has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every token that was due has been made.
    Finished(FinishReason),
    /// The client went away.
    Abort,
    /// The engine failed.
    Error,
}

impl Ending {
    fn label(self) -> &'static str {
        match self {
            Ending::Finished(FinishReason::Stop) => "stop",
            Ending::Finished(FinishReason::Length) => "length",
            Ending::Abort => "abort",
            Ending::Error => "error",
        }
    }
}

/// Every series of this process, on its own registry.
pub struct Metrics {
    registry: Registry,
    engine: EngineSeries,
    experts: Option<ExpertSeries>,
    /// What `engine` showed at the last scrape: counters move by the difference.
    last: Mutex<EngineStats>,
    prefix_cache: bool,
    pub(crate) time_to_first_token: Histogram,
    pub(crate) inter_token: Histogram,
    pub(crate) request_time: Histogram,
    endings: IntCounterVec,
    refused: IntCounterVec,
    below_one_block: IntCounter,
}

/// Series that follow the engine's own figures.
struct EngineSeries {
    running: IntGauge,
    waiting: IntGauge,
    paused: IntGauge,
    kv_usage: Gauge,
    kv_kept: IntGauge,
    sessions: IntGauge,
    evicted: IntCounterVec,
    prefix_queries: IntCounter,
    prefix_hits: IntCounter,
    prefix_tokens: IntCounterVec,
    prompt_tokens: IntCounter,
    prompt_tokens_cached: IntCounter,
    generation_tokens: IntCounter,
    preemptions: IntCounter,
    budgets: IntCounterVec,
    steps: IntCounter,
    step_tokens: IntCounter,
}

/// What stays the same for the life of the process.
pub struct Constants<'a> {
    /// The model's id, a label on every series.
    pub model: &'a str,
    /// The replica's name.
    pub name: &'a str,
    /// Differs after each start.
    pub instance: &'a str,
    /// What computes.
    pub device: &'a str,
    /// Whether KV is reused between requests.
    pub prefix_cache: bool,
    /// How the model's experts are used; a model without them has no such series.
    pub expert_load: Option<Arc<ExpertLoad>>,
}

impl Metrics {
    /// Registers everything.
    ///
    /// # Errors
    /// When a name or label is not what Prometheus allows, which only a change of this file can bring about.
    pub fn new(constants: &Constants<'_>) -> Result<Metrics, prometheus::Error> {
        let made = Maker {
            registry: Registry::new(),
            model: constants.model,
        };
        let metrics = Metrics {
            engine: EngineSeries::new(&made)?,
            experts: ExpertSeries::new(&made, constants.expert_load.clone())?,
            last: Mutex::new(EngineStats::default()),
            prefix_cache: constants.prefix_cache,
            time_to_first_token: made.histogram(
                "vllm:time_to_first_token_seconds",
                "From a request's arrival to its first token.",
                TTFT_SECONDS,
            )?,
            inter_token: made.histogram(
                "vllm:inter_token_latency_seconds",
                "Between a request's tokens, text or not.",
                INTER_TOKEN_SECONDS,
            )?,
            request_time: made.histogram(
                "vllm:e2e_request_latency_seconds",
                "From a request's arrival to the end of its answer, for those that finished.",
                REQUEST_SECONDS,
            )?,
            endings: made.counters(
                "vllm:request_success_total",
                "Requests that the engine took, by how they ended: stop, length, abort (the client went away) or error.",
                "finished_reason",
            )?,
            refused: made.counters(
                "replica_requests_refused_total",
                "Requests answered with an error, by its code.",
                "code",
            )?,
            below_one_block: made.counter(
                "replica_prompts_below_one_block_total",
                "Prompts too short for the prefix cache to ever reuse: they fill no whole block before their last token.",
            )?,
            registry: made.registry.clone(),
        };
        for reason in ["stop", "length", "abort", "error"] {
            metrics.endings.with_label_values(&[reason]);
        }
        state(&made, constants)?;
        Ok(metrics)
    }

    /// A request that the engine took has ended.
    pub fn count_ending(&self, ending: Ending) {
        self.endings.with_label_values(&[ending.label()]).inc();
    }

    /// A request was answered with an error; `code` comes from the failure table, never from a client.
    pub fn count_refused(&self, code: &'static str) {
        self.refused.with_label_values(&[code]).inc();
    }

    /// A prompt of so many tokens was submitted.
    pub fn count_prompt(&self, tokens: usize) {
        if tokens <= replica_core::BLOCK_TOKENS {
            self.below_one_block.inc();
        }
    }

    /// The exposition text, brought up to `stats`.
    ///
    /// # Errors
    /// When the encoder refuses a family, which no family registered here makes it do.
    pub fn render(&self, stats: &EngineStats) -> Result<String, prometheus::Error> {
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            self.engine.advance(&last, stats, self.prefix_cache);
            *last = *stats;
        }
        if let Some(experts) = &self.experts {
            experts.refresh();
        }
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

impl EngineSeries {
    fn new(made: &Maker<'_>) -> Result<EngineSeries, prometheus::Error> {
        Ok(EngineSeries {
            running: made.gauge("vllm:num_requests_running", "Requests that hold KV blocks.")?,
            waiting: made.gauge("vllm:num_requests_waiting", "Requests not yet begun.")?,
            paused: made.gauge(
                "replica_requests_paused",
                "Requests begun whose client reads too slowly to be given another token.",
            )?,
            kv_usage: made.share(
                "vllm:kv_cache_usage_perc",
                "Share of KV blocks leased to requests, 0 to 1.",
            )?,
            kv_kept: made.gauge(
                "replica_kv_blocks_kept",
                "Cached KV blocks that nobody uses now and that a hint about their session keeps.",
            )?,
            sessions: made.gauge(
                "replica_sessions",
                "Sessions named by a trusted gateway that own cached KV or have a request here.",
            )?,
            evicted: made.counters(
                "replica_kv_blocks_evicted_total",
                "Cached KV blocks lost to others, by what was known of their session: released, expired, plain or kept.",
                "standing",
            )?,
            prefix_queries: made.counter(
                "vllm:prefix_cache_queries_total",
                "Prompt tokens looked up in the prefix cache, once per request.",
            )?,
            prefix_hits: made.counter(
                "vllm:prefix_cache_hits_total",
                "Prompt tokens whose KV was reused, once per request.",
            )?,
            prefix_tokens: made.counters(
                "replica_prefix_tokens_total",
                "Prompt tokens by whether their KV was reused: hit or miss.",
                "outcome",
            )?,
            prompt_tokens: made.counter(
                "vllm:prompt_tokens_total",
                "Prompt tokens of requests begun.",
            )?,
            prompt_tokens_cached: made.counter(
                "vllm:prompt_tokens_cached_total",
                "Prompt tokens that were not computed because their KV was reused.",
            )?,
            generation_tokens: made.counter("vllm:generation_tokens_total", "Tokens generated.")?,
            preemptions: made.counter(
                "vllm:num_preemptions_total",
                "Times that a running request gave its KV blocks back to make room.",
            )?,
            budgets: made.counters(
                "replica_thinking_budgets_total",
                "Blocks of thinking by what their budget did to them: reached (it was used up), closed (so the block was \
                 closed by force), prolonged (its closing mark came too early and was put off).",
                "outcome",
            )?,
            steps: made.counter("replica_steps_total", "Model steps that succeeded.")?,
            step_tokens: made.counter(
                "replica_step_tokens_total",
                "Tokens computed by those steps, recomputation after preemption among them.",
            )?,
        })
    }

    /// Sets the gauges, and moves the counters on from `last` to `now`.
    fn advance(&self, last: &EngineStats, now: &EngineStats, prefix_cache: bool) {
        self.running.set(gauge_value(now.running));
        self.waiting.set(gauge_value(now.waiting));
        self.paused.set(gauge_value(now.paused));
        #[expect(clippy::cast_precision_loss, reason = "a share for a dashboard")]
        let usage = now.kv_blocks_used as f64 / now.kv_blocks_total.max(1) as f64;
        self.kv_usage.set(usage);
        self.kv_kept.set(gauge_value(now.kv_blocks_kept));
        self.sessions.set(gauge_value(now.sessions));
        for standing in Standing::ALL {
            let (now, last) = (
                now.evicted[standing as usize],
                last.evicted[standing as usize],
            );
            let evicted = self.evicted.with_label_values(&[standing.name()]);
            evicted.inc_by(now.saturating_sub(last));
        }
        let prompt = now.prompt_tokens.saturating_sub(last.prompt_tokens);
        let cached = now.cached_tokens.saturating_sub(last.cached_tokens);
        let missed = prompt.saturating_sub(cached);
        self.prompt_tokens.inc_by(prompt);
        self.prompt_tokens_cached.inc_by(cached);
        // Without a cache nothing is looked up, yet every token is computed.
        self.prefix_queries
            .inc_by(if prefix_cache { prompt } else { 0 });
        self.prefix_hits.inc_by(cached);
        self.prefix_tokens
            .with_label_values(&["hit"])
            .inc_by(cached);
        self.prefix_tokens
            .with_label_values(&["miss"])
            .inc_by(missed);
        self.generation_tokens
            .inc_by(now.generated_tokens.saturating_sub(last.generated_tokens));
        self.preemptions
            .inc_by(now.preemptions.saturating_sub(last.preemptions));
        for (outcome, now, last) in [
            ("reached", now.budgets.reached, last.budgets.reached),
            ("closed", now.budgets.closed, last.budgets.closed),
            ("prolonged", now.budgets.prolonged, last.budgets.prolonged),
        ] {
            let series = self.budgets.with_label_values(&[outcome]);
            series.inc_by(now.saturating_sub(last));
        }
        self.steps.inc_by(now.steps.saturating_sub(last.steps));
        self.step_tokens
            .inc_by(now.computed_tokens.saturating_sub(last.computed_tokens));
    }
}

/// The series that never change.
fn state(made: &Maker<'_>, constants: &Constants<'_>) -> Result<(), prometheus::Error> {
    let enabled = made.gauge(
        "replica_prefix_cache_enabled",
        "1 where KV is reused between requests; 0 is for measurements only.",
    )?;
    enabled.set(i64::from(constants.prefix_cache));
    let names = ["name", "instance", "device", "version", "block_tokens"];
    let info = made.opts("replica_info", "1, with what this process is as labels.");
    let info = made.add(GaugeVec::new(info, &names)?)?;
    let block_tokens = replica_core::BLOCK_TOKENS.to_string();
    let version = env!("CARGO_PKG_VERSION");
    let values = [
        constants.name,
        constants.instance,
        constants.device,
        version,
        &block_tokens,
    ];
    info.with_label_values(&values).set(1.0);
    Ok(())
}

fn gauge_value(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
