//! The command line.

use std::net::SocketAddr;

use clap::{Args, Parser, Subcommand};

use crate::loader::{BUILTIN, ModelSource};

/// Serves one language model over an OpenAI-compatible HTTP interface, with a prefix cache that tells the truth.
#[derive(Debug, Parser)]
#[command(name = "engine-replica", version, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load a model and answer requests until SIGTERM
    #[command(after_long_help = SERVE_HELP)]
    Serve(ServeArgs),
    /// Measure a model on this machine, without HTTP
    #[command(after_long_help = BENCH_HELP)]
    Bench(BenchArgs),
}

const SERVE_HELP: &str = "\
Examples:
  Serve the built-in model, which thinks before it answers:
    engine-replica serve
    curl http://127.0.0.1:8001/v1/chat/completions -H 'content-type: application/json' \\
      -d '{\"messages\":[{\"role\":\"user\",\"content\":\"What is 47*36?\"}]}'

  Serve a GGUF file, then ask it something:
    engine-replica serve --model SmolLM2-135M-Instruct.Q4_1.gguf --listen 127.0.0.1:8001
    curl http://127.0.0.1:8001/v1/chat/completions -H 'content-type: application/json' \\
      -d '{\"messages\":[{\"role\":\"user\",\"content\":\"Name a colour.\"}]}'

  Serve a Hugging Face folder with room for long conversations:
    engine-replica serve --model ./Qwen3-0.6B --kv-memory 4096 --max-running 8

How much KV is enough: every running request needs room for its prompt and its answer, and what is left over is the \
prefix cache. A conversation that comes back finds its prefix only while that room holds it. `/metrics` shows hits and \
misses in tokens; `/health` shows blocks used.

Signals: SIGTERM and SIGINT drain (new requests get 503, running ones finish within --drain-seconds); a second one ends \
at once.";

const BENCH_HELP: &str = "\
Examples:
  Prefill and decode speed, alone and four at a time:
    engine-replica bench --model m.gguf --prompt-tokens 512,2048 --streams 1,4

  One JSON object a line, for a script:
    engine-replica bench --model m.gguf --json

What the columns say: `cold` is the time to the first token of a prompt that nobody has sent before, `warm` of the same \
prompt once more, when its prefix lies in the cache; `prefill` is prompt tokens over the cold time; `decode` is tokens \
a second while all streams decode, all together and each. Medians over --runs.";

/// Flags of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The model and the engine.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Address to answer at; port 0 takes a free one and prints it
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:8001",
        help_heading = "Serving"
    )]
    pub listen: SocketAddr,
    /// Name of this replica in /health and /metrics
    #[arg(
        long,
        value_name = "NAME",
        default_value = "replica",
        help_heading = "Serving"
    )]
    pub name: String,
    /// Model id that clients name; by default the model's own name
    #[arg(long, value_name = "NAME", help_heading = "Serving")]
    pub model_id: Option<String>,
    /// Most requests that wait for their turn; the next is answered 503 with Retry-After
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = at_least_one(), help_heading = "Serving")]
    pub queue_max: u32,
    /// Longest wait for running answers after SIGTERM
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        help_heading = "Serving"
    )]
    pub drain_seconds: u64,
    /// Believe the headers x-session-id, x-kv-keep-seconds, x-tenant-id and x-priority, and answer /sessions/keep and
    /// /sessions/release: only where clients reach this replica through a gateway that sets them
    #[arg(long, help_heading = "Serving")]
    pub trust_hints: bool,
    /// End when the process that started this one ends, however it ends
    #[arg(long, help_heading = "Serving")]
    pub exit_with_parent: bool,
}

/// Flags of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The model and the engine.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Prompt lengths, in tokens
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [512, 2048], value_parser = at_least_one(), help_heading = "Measuring")]
    pub prompt_tokens: Vec<u32>,
    /// Numbers of streams at a time
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 4], value_parser = at_least_one(), help_heading = "Measuring")]
    pub streams: Vec<u32>,
    /// Tokens that each stream generates
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..), help_heading = "Measuring")]
    pub decode_tokens: u32,
    /// Repetitions of each row; the medians are shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one(), help_heading = "Measuring")]
    pub runs: u32,
    /// One JSON object a row instead of a table
    #[arg(long, help_heading = "Measuring")]
    pub json: bool,
}

/// Flags that make an engine.
#[derive(Clone, Debug, Args)]
pub struct EngineArgs {
    /// A GGUF file (any shard of a split one) or a Hugging Face folder; `builtin` is a tiny model that reasons, in this program
    #[arg(long, value_name = "PATH", default_value = BUILTIN, help_heading = "Model")]
    pub model: ModelSource,
    /// What computes: `cpu`, `cuda` or `cuda:N` (NVIDIA GPU N, the first is 0), `reference` (scalar and slow, for
    /// comparison), or `auto`: the first GPU where a driver and NVRTC are found, else the CPU, and the start says why
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Auto, help_heading = "Model")]
    pub device: Device,
    /// Threads that compute; by default one a core
    #[arg(long, value_name = "N", value_parser = at_least_one(), help_heading = "Model")]
    pub threads: Option<u32>,
    /// Most tokens of prompt and answer together; by default what the model was made for and the KV room allows
    #[arg(long, value_name = "N", value_parser = at_least_one(), help_heading = "KV cache")]
    pub context_max: Option<u32>,
    /// Tokens that the KV cache holds
    #[arg(long, value_name = "N", conflicts_with = "kv_memory", value_parser = at_least_one(), help_heading = "KV cache")]
    pub kv_tokens: Option<u32>,
    /// Memory for the KV cache, in MiB; by default 1024, or less where --max-running full contexts need less
    #[arg(long, value_name = "MIB", value_parser = at_least_one(), help_heading = "KV cache")]
    pub kv_memory: Option<u32>,
    /// Reuse nothing between requests: for measurements only, and shown in /health and /metrics
    #[arg(long, help_heading = "KV cache")]
    pub no_prefix_cache: bool,
    /// Most requests that run at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = at_least_one(), help_heading = "Scheduling")]
    pub max_running: u32,
    /// Most tokens computed in one step: larger prefills sooner, smaller decodes more evenly
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = at_least_one(), help_heading = "Scheduling")]
    pub step_tokens: u32,
    /// Tokens of output that a request must find room for before it is begun, beside as many for each that runs: more
    /// means fewer preemptions, less means fuller use of the KV cache
    #[arg(
        long,
        value_name = "N",
        default_value_t = 128,
        help_heading = "Scheduling"
    )]
    pub output_room: u32,
    /// Most of the KV cache that hints about sessions may keep, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100), help_heading = "KV cache")]
    pub kept_percent: u32,
}

fn at_least_one() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The fastest that this machine has.
    Auto,
    /// SIMD and threads.
    Cpu,
    /// The NVIDIA GPU of this number.
    Cuda(u32),
    /// Scalar and slow.
    Reference,
}

impl std::str::FromStr for Device {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Device::Auto),
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::Cuda(0)),
            "reference" => Ok(Device::Reference),
            _ => {
                let number = text.strip_prefix("cuda:").and_then(|n| n.parse().ok());
                number
                    .map(Device::Cuda)
                    .ok_or("expected auto, cpu, cuda, cuda:N (a GPU's number from 0) or reference")
            }
        }
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Device::Auto => f.write_str("auto"),
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(number) => write!(f, "cuda:{number}"),
            Device::Reference => f.write_str("reference"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use expect_test::expect_file;

    #[track_caller]
    fn check(line: &str, expect: Result<(), &str>) {
        let got = Cli::try_parse_from(line.split(' '))
            .map(|_| ())
            .map_err(|e| e.to_string());
        match expect {
            Ok(()) => assert_eq!(got, Ok(()), "{line}"),
            Err(part) => assert!(
                got.as_ref().is_err_and(|text| text.contains(part)),
                "{line}: {got:?}"
            ),
        }
    }

    #[test]
    fn flags_are_taken_or_refused_with_what_is_allowed() {
        check("engine-replica serve --model m", Ok(()));
        check(
            "engine-replica serve --model m --kv-tokens 4096 --device reference",
            Ok(()),
        );
        check(
            "engine-replica bench --model m --prompt-tokens 8,16 --streams 1,2 --json",
            Ok(()),
        );
        check("engine-replica serve", Ok(()));
        check("engine-replica bench --json", Ok(()));
        check("engine-replica serve --model", Err("--model <PATH>"));
        check(
            "engine-replica serve --model m --device gpu",
            Err("expected auto, cpu, cuda, cuda:N (a GPU's number from 0) or reference"),
        );
        for device in ["auto", "cpu", "cuda", "cuda:3"] {
            check(
                &format!("engine-replica serve --model m --device {device}"),
                Ok(()),
            );
        }
        for device in ["cuda:", "cuda:-1", "cuda:x", "cuda:4294967296"] {
            check(
                &format!("engine-replica serve --model m --device {device}"),
                Err("expected auto"),
            );
        }
        check(
            "engine-replica serve --model m --max-running 0",
            Err("0 is not in 1..="),
        );
        check(
            "engine-replica serve --model m --kv-tokens 5 --kv-memory 5",
            Err("cannot be used with"),
        );
        check(
            "engine-replica serve --model m --kv-token 5",
            Err("'--kv-tokens'"),
        );
    }

    #[test]
    fn the_help_is_as_written_down() {
        let mut text = String::new();
        let mut command = Cli::command();
        command.build();
        for name in ["serve", "bench"] {
            let sub = command.find_subcommand_mut(name).unwrap();
            text.push_str(&sub.clone().term_width(110).render_long_help().to_string());
            text.push_str("\n\n");
        }
        let trimmed: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
        expect_file!["../tests/help.txt"].assert_eq(&(trimmed.join("\n") + "\n"));
    }
}
