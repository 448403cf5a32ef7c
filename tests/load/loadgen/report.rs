//! The result as one JSON object.

use crate::{args::Args, cpu::CpuTime, run::Measured, tally::percentile};
use serde_json::{Map, Value, json};

/// The report of `measured`: latencies in microseconds, CPU time in seconds.
pub(crate) fn render(args: &Args, measured: &Measured) -> String {
    let tally = &measured.tally;
    let window = measured.window.as_secs_f64();
    let per_second = |count: u64| rounded(count as f64 / window.max(f64::MIN_POSITIVE));
    let shape = args.mode.shape();
    let cpu: Map<String, Value> = measured
        .cpu
        .iter()
        .map(|(name, used)| (name.clone(), cpu(*used)))
        .collect();
    json!({
        "mode": shape.name,
        "connections": args.connections.unwrap_or(shape.connections),
        "secs": window,
        "requests": tally.requests,
        "requests_per_s": per_second(tally.requests),
        "events": tally.events,
        "events_per_s": per_second(tally.events),
        "latency_us": microseconds(&tally.latencies),
        "first_byte_us": microseconds(&tally.first_bytes),
        "bytes_out": tally.bytes_out,
        "bytes_in": tally.bytes_in,
        "prompt_tokens": tally.prompt_tokens,
        "cached_tokens": tally.cached_tokens,
        "errors": tally.errors,
        "errors_outside": tally.errors_outside,
        "first_error": tally.first_error,
        "reconnects": tally.reconnects,
        "machine_busy_s": rounded(measured.machine_busy),
        "cpu": cpu,
    })
    .to_string()
}

fn cpu(used: CpuTime) -> Value {
    json!({"user_s": rounded(used.user), "system_s": rounded(used.system), "on_cpu_s": used.on_cpu})
}

fn microseconds(nanoseconds: &[u64]) -> Value {
    let mut sorted = nanoseconds.to_vec();
    sorted.sort_unstable();
    let at = |share| percentile(&sorted, share) as f64 / 1_000.0;
    json!({"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p999": at(0.999), "max": at(1.0)})
}

/// To hundredths: more digits would pretend to a precision that the readings lack.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
