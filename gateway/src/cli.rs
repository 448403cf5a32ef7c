//! What a person types.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Session-aware gateway in front of LLM engine replicas.
///
/// Clients talk to one OpenAI-compatible address; each conversation stays on the replica that holds its prefix.
#[derive(Debug, Parser)]
#[command(name = "gateway", version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How logs are written, to standard error.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, env = "PINION_LOG_FORMAT")]
    pub log_format: LogFormat,
    /// Which logs: a level (error, warn, info, debug, trace) or `target=level` pairs, comma separated.
    #[arg(
        long,
        global = true,
        value_name = "FILTER",
        default_value = "info",
        env = "PINION_LOG"
    )]
    pub log: String,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve in front of replicas that run already.
    ///
    /// `gateway.example.toml` shows every key with its default. SIGTERM and Ctrl-C drain: no new request, answers
    /// in flight go on for `timeouts.drain_seconds`; a second Ctrl-C ends at once.
    Serve {
        /// The configuration file.
        #[arg(long, value_name = "FILE", default_value = "gateway.toml")]
        config: PathBuf,
    },
    /// Check a configuration file and the policy that it names, and say every problem.
    Check {
        /// The configuration file.
        #[arg(long, value_name = "FILE", default_value = "gateway.toml")]
        config: PathBuf,
    },
    /// Start replicas of one model and the gateway in front of them: a whole system on one machine.
    ///
    /// Takes all of them down on Ctrl-C or SIGTERM, and also when one of them dies before it was ready.
    Up(Up),
}

/// The options of `up`.
#[derive(Clone, Debug, Args)]
pub struct Up {
    /// The model: a GGUF file or a folder of safetensors.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    /// How many replicas.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub replicas: u16,
    /// Where clients connect.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Where operators connect: /metrics, /livez, /readyz, /state.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090")]
    pub admin_listen: SocketAddr,
    /// The replica's executable [default: `engine-replica` beside this one].
    #[arg(long, value_name = "PATH")]
    pub replica_bin: Option<PathBuf>,
    /// Seconds between a replica's death and its new start; doubled with each death that follows, up to 30.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=30))]
    pub restart_seconds: u64,
    /// More arguments for each replica, after `--`.
    #[arg(last = true, value_name = "REPLICA ARGS")]
    pub replica_args: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_follows_two_dashes_goes_to_the_replicas() {
        let cli =
            Cli::try_parse_from(["gateway", "up", "--model", "m.gguf", "--", "--threads", "1"]);
        let Command::Up(up) = cli.unwrap().command else {
            panic!("not `up`")
        };
        assert_eq!(
            (up.replicas, &up.replica_args[..]),
            (2, &["--threads".to_owned(), "1".into()][..])
        );
    }
}
