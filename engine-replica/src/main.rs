//! The command `engine-replica`: flags in, an exit code out, the work in the library.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use engine_replica::bench::{self, BenchError};
use engine_replica::cli::{BenchArgs, Cli, Command, ServeArgs};
use engine_replica::serve::{self, Ended};
use engine_replica::signals::{self, Signals};
use engine_replica::start::{self, StartError};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Threads that talk to clients; the model's threads are its own, and talking takes little.
const TALK_THREADS: usize = 2;
/// Threads that read and tokenise requests; more would only take the model's cores.
const PREPARE_THREADS_MAX: usize = 2;
/// Requests that may wait for the engine in a measurement: as many as anyone would stream at a time.
const BENCH_QUEUE_MAX: usize = 1024;

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
enum MainError {
    #[error("{0}")]
    Start(#[from] StartError),
    #[error("{0}")]
    Bench(#[from] BenchError),
    #[error("cannot listen at {address}: {error}; choose another with --listen")]
    Listen {
        address: SocketAddr,
        error: io::Error,
    },
    #[error("cannot follow the parent process: {0}")]
    Parent(io::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
    let done = match cli.command {
        Command::Serve(args) => serve_model(&args),
        Command::Bench(args) => bench_model(&args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        // Nothing is left to do where even this cannot be written.
        let _ = writeln!(io::stderr(), "engine-replica: {error}");
        ExitCode::FAILURE
    })
}

fn serve_model(args: &ServeArgs) -> Result<ExitCode, MainError> {
    if args.exit_with_parent {
        signals::end_with_parent().map_err(MainError::Parent)?;
    }
    // A taken port should not cost the time to load. Given back at once, since a connection that nobody answers while
    // the model loads is worse for a gateway than a refused one.
    drop(std::net::TcpListener::bind(args.listen).map_err(in_use(args.listen))?);
    let started = start::engine(&args.engine, args.queue_max as usize)?;
    let api = Arc::new(start::api(&started, args)?);
    runtime()?.block_on(async {
        let mut tasks = JoinSet::new();
        let signals = Signals::listen(&mut tasks)?;
        let listener = TcpListener::bind(args.listen)
            .await
            .map_err(in_use(args.listen))?;
        let mut out = io::stdout();
        for fact in &started.facts {
            writeln!(out, "{fact}")?;
        }
        writeln!(out, "listening  http://{}", listener.local_addr()?)?;
        out.flush()?;
        let drain = Duration::from_secs(args.drain_seconds);
        let ended = serve::serve(api, listener, || signals.next(), drain).await;
        Ok(match ended {
            Ended::Drained => ExitCode::SUCCESS,
            Ended::CutOff | Ended::EngineStopped => ExitCode::FAILURE,
        })
    })
}

fn bench_model(args: &BenchArgs) -> Result<(), MainError> {
    let started = start::engine(&args.engine, BENCH_QUEUE_MAX)?;
    for fact in &started.facts {
        writeln!(io::stderr(), "{fact}")?;
    }
    let plan = bench::Plan {
        prompt_tokens: args.prompt_tokens.clone(),
        streams: args.streams.clone(),
        decode_tokens: args.decode_tokens,
        runs: args.runs,
        json: args.json,
    };
    let room = bench::Room {
        context_max: started.context_max,
        kv_tokens: started.kv_tokens,
        max_running: args.engine.max_running as usize,
        vocab: started.vocab,
    };
    let mut out = io::stdout();
    let measured = bench::bench(&started.engine, &plan, room, &started.name, &mut out);
    Ok(runtime()?.block_on(measured)?)
}

fn in_use(address: SocketAddr) -> impl Fn(io::Error) -> MainError {
    move |error| MainError::Listen { address, error }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(TALK_THREADS)
        .max_blocking_threads(PREPARE_THREADS_MAX)
        .enable_all()
        .build()
}
