//! Stands in for a fleet of engine replicas: one process, one thread, one listener per replica. Answers as an
//! engine with a prefix cache would, at next to no cost. `tests/load/README.md` lists its endpoints and knobs.
#![forbid(unsafe_code)]

mod answer;
mod fleet;
mod knobs;
mod request;
mod serve;
mod stream;

use clap::Parser as _;
use std::process::ExitCode;

/// Replicas of one process: one thread serves them all, and more would only measure its queue.
const REPLICAS_MAX: usize = 64;

/// Mock engine replicas on 127.0.0.1, one for each port.
#[derive(clap::Parser, Debug)]
#[command(name = "mock-upstream")]
struct Args {
    /// One port for each replica
    #[arg(required = true, num_args = 1..=REPLICAS_MAX)]
    ports: Vec<u16>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = runtime.and_then(|runtime| {
        tokio::task::LocalSet::new().block_on(&runtime, serve::serve(&args.ports, say_ready))
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error),
    }
}

#[expect(
    clippy::print_stdout,
    reason = "who started this program waits for the line"
)]
fn say_ready() {
    println!("ready");
}

#[expect(
    clippy::print_stderr,
    reason = "a command-line program says here why it ended"
)]
fn complain(error: &std::io::Error) -> ExitCode {
    eprintln!("mock-upstream: {error}");
    ExitCode::FAILURE
}
