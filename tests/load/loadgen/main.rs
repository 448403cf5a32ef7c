//! Closed-loop load generator for chat-completions endpoints: keep-alive HTTP/1.1 connections with one
//! request in flight on each, all on one thread. Prints one JSON object; `tests/load/README.md` says how to
//! read it.
#![forbid(unsafe_code)]

mod answer;
mod args;
mod body;
mod client;
mod conversation;
mod cpu;
mod mode;
mod prose;
mod report;
mod run;
mod tally;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return complain(&format!("the runtime did not start: {error}")),
    };
    let measured = tokio::task::LocalSet::new().block_on(&runtime, run::run(&args));
    print(&report::render(&args, &measured))
}

#[expect(clippy::print_stdout, reason = "the result is this program's output")]
fn print(result: &str) -> ExitCode {
    println!("{result}");
    ExitCode::SUCCESS
}

#[expect(
    clippy::print_stderr,
    reason = "a command-line program says here why it gave no result"
)]
fn complain(why: &str) -> ExitCode {
    eprintln!("loadgen: {why}");
    ExitCode::FAILURE
}
