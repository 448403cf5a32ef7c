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
    /// Check, compare and try routing policies, with no gateway running.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Say what a family's markers make of a stream: what is reasoning in it and what is the answer.
    ///
    /// Reads from standard input one JSON array of strings a line, the deltas of a stream, and prints one JSON object a line:
    /// `reasoning` and `content` (null where there is none) and `finish`, which is `stop`: deltas do not say why they ended.
    Split(Split),
}

/// The options of `split`.
#[derive(Clone, Debug, Args)]
pub struct Split {
    /// The family of the model, such as qwen3; an unknown one is answered with all names.
    #[arg(long, value_name = "NAME")]
    pub family: String,
    /// What the chat template wrote at the end of the prompt; it decides whether the stream begins inside reasoning.
    #[arg(long, value_name = "TEXT")]
    pub prompt_tail: Option<String>,
    /// Whether thinking was on [default: as the family does where nobody says].
    #[arg(long, value_enum)]
    pub thinking: Option<Thinking>,
}

/// Whether a request thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Thinking {
    /// It does.
    On,
    /// It does not.
    Off,
}

/// What to do with policy files.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Check policy files and say every problem of all of them.
    Check {
        /// The policy files.
        #[arg(value_name = "FILES", required = true)]
        files: Vec<PathBuf>,
    },
    /// Print the JSON Schema of policy files, by which editors complete them.
    Schema,
    /// Replay a recorded trace under policies, with other routers' rules beside them.
    ///
    /// Replicas are modelled: an LRU prefix cache and one prefill queue each, at a speed at which the trace without any hit would
    /// load them to --offered-load. Times are to the first token, in seconds.
    Replay {
        /// The policies; the built-in one where none is named.
        #[arg(long = "policy", value_name = "FILES", num_args = 1.., value_delimiter = ',')]
        policies: Vec<PathBuf>,
        /// The trace and what it is replayed on.
        #[command(flatten)]
        setup: ReplaySetup,
        /// Print one JSON object a policy, number of replicas and cache size, a line each.
        #[arg(long)]
        json: bool,
    },
    /// Say where a request would go and why: what each replica would cost, part by part.
    ///
    /// Costs are in milliseconds at the pace that a gateway takes for granted as it starts: 10,000 tokens a second.
    Explain(Explain),
    /// Judge texts: how much thinking each is worth, from 0 to 1, and the lane that the policy's rules give it.
    Classify(Classify),
    /// Say what a new policy would change: keys, sessions that would move, hits and times on a recorded trace.
    Diff {
        /// The policy that runs.
        old: PathBuf,
        /// The policy that would run.
        new: PathBuf,
        /// The trace and what it is replayed on.
        #[command(flatten)]
        setup: ReplaySetup,
    },
}

/// The options of `policy classify`.
#[derive(Clone, Debug, Args)]
pub struct Classify {
    /// JSON lines with `id` and `text`; `-` reads them from standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub texts: PathBuf,
    /// The policy whose rules give the lane; the built-in one, which has no lanes, where none is named.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Weights that routing-policies/train/train.py made, to be tried in place of the built-in ones.
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Where the policy has no lanes: the difficulty from which on the lane is `think`, else `no_think`.
    #[arg(long, value_name = "DIFFICULTY", default_value_t = 0.4)]
    pub think_from: f64,
}

/// The options of `policy explain`.
#[derive(Clone, Debug, Args)]
pub struct Explain {
    /// The body of a chat completion request.
    #[arg(long, value_name = "FILE")]
    pub request: PathBuf,
    /// A header that comes with it, as `name: value`; may be given several times.
    #[arg(long = "header", value_name = "HEADER", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// The policy; the built-in one where none is named.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The fleet, as a gateway prints it at /state on its admin address.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Without --state: this many idle replicas, called replica-0 and so on.
    #[arg(long, value_name = "N", default_value_t = 4, conflicts_with = "state", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub replicas: u16,
    /// An earlier request, as `REPLICA=FILE`, that this replica has answered; it came with the same headers. May be given several times.
    #[arg(long, value_name = "REPLICA=FILE", value_parser = seen)]
    pub seen: Vec<(String, PathBuf)>,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("expected `name: value`, such as `x-session-id: abc`")?;
    Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
}

fn seen(text: &str) -> Result<(String, PathBuf), String> {
    let (replica, file) = text
        .split_once('=')
        .ok_or("expected `REPLICA=FILE`, such as `replica-0=turn-1.json`")?;
    Ok((replica.to_owned(), file.into()))
}

/// A recorded trace and what it is replayed on.
#[derive(Clone, Debug, Args)]
pub struct ReplaySetup {
    /// JSON lines, plain or gzipped, each with `timestamp` (ms), `input_length`, `output_length` (tokens), `session_id` and
    /// `hash_ids` (a number per block of the prompt, each standing for everything up to its block).
    #[arg(long, value_name = "FILE")]
    pub trace: PathBuf,
    /// How many replicas; several numbers are replayed one after another.
    #[arg(long, value_name = "N,…", default_value = "4,8,16", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256))]
    pub replicas: Vec<u16>,
    /// Tokens that each replica's prefix cache holds; several numbers are replayed one after another.
    #[arg(long, value_name = "N,…", default_value = "262144,1048576,4194304", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    pub cache_tokens: Vec<u64>,
    /// Tokens that one of the trace's `hash_ids` stands for.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub block_tokens: u32,
    /// The share of the replicas' prefill capacity that the trace would take without any hit.
    #[arg(long, value_name = "X", default_value_t = 0.9, value_parser = positive)]
    pub offered_load: f64,
    /// Divides all times between arrivals.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive)]
    pub speed: f64,
    /// Spreads requests that arrive at the same instant over so many milliseconds: traces round their times.
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = not_negative)]
    pub jitter_ms: f64,
    /// Which part of the trace, by time: choose settings on the first half, report them on the second.
    #[arg(long, value_enum, default_value_t = Half::Whole)]
    pub half: Half,
}

/// Which part of a trace, by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Half {
    /// All of it.
    Whole,
    /// What arrives before the middle.
    First,
    /// What arrives after it.
    Second,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    number
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
        .ok_or_else(|| "expected a number over 0".to_owned())
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    number
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| "expected a number of at least 0".to_owned())
}

/// What `--model` says for the model inside the replica's executable, as the replica does.
const BUILTIN: &str = "builtin";

/// The options of `up`.
#[derive(Clone, Debug, Args)]
pub struct Up {
    /// The model: a GGUF file or a Hugging Face folder; `builtin` is a tiny model that reasons, inside the replica's executable.
    #[arg(long, value_name = "PATH", default_value = BUILTIN)]
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
    /// The routing policy; without it the one built into the gateway runs. A changed file is taken up within seconds.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The replica's executable [default: `engine-replica` beside this one].
    #[arg(long, value_name = "PATH")]
    pub replica_bin: Option<PathBuf>,
    /// Ask nothing at the start; without this the built-in model is asked a sum in both lanes, and its answers are shown.
    #[arg(long)]
    pub no_sample: bool,
    /// Seconds between a replica's death and its new start; doubled with each death that follows, up to 30.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=30))]
    pub restart_seconds: u64,
    /// More arguments for each replica, after `--`.
    #[arg(last = true, value_name = "REPLICA ARGS")]
    pub replica_args: Vec<String>,
}

impl Up {
    /// Whether the model is the one inside the replica's executable.
    #[must_use]
    pub fn is_builtin(&self) -> bool {
        self.model.as_os_str() == BUILTIN
    }
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
