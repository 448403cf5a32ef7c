//! Measures what this machine can do at most, to be read beside an engine's figures: how fast its threads
//! together read memory and multiply-add 32-bit floats. Prints one JSON object.
//!
//! Built for the very CPU that it runs on, else the compiler may not use the widest vectors that are there:
//! `cargo rustc --release -p system-tests --bin machine-limits -- -C target-cpu=native`.
#![forbid(unsafe_code)]

use clap::Parser as _;
use std::{hint::black_box, num::NonZeroUsize, process::ExitCode, thread};
use tokio::time::Instant;

/// Threads at most: every one holds its own [`READ_BYTES`].
const THREADS_MAX: u64 = 256;
/// Bytes that each thread reads again and again: far more than any cache it might have to itself.
const READ_BYTES: usize = 256 << 20;
const READ_PASSES: usize = 6;
/// Running sums that do not depend on each other: enough to fill two multiply-add units of 16 floats whose
/// result is there after four cycles, and to stay within 32 vector registers.
const SUMS: usize = 192;
const FMA_STEPS: usize = 12_000_000;
/// The best of so many tries counts: other work on the machine only ever slows one down.
const TRIES: usize = 5;

/// Whether `mul_add` is an instruction here; a call for each would be measured else.
const HAS_MULTIPLY_ADD: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

/// Memory read speed and f32 multiply-add speed of all threads together.
#[derive(clap::Parser, Debug)]
#[command(name = "machine-limits")]
struct Args {
    /// Threads [default: one for each CPU]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=THREADS_MAX))]
    threads: Option<u64>,
}

#[expect(clippy::print_stdout, reason = "the result is this program's output")]
fn main() -> ExitCode {
    if !HAS_MULTIPLY_ADD {
        return refuse();
    }
    let cpus = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = Args::parse()
        .threads
        .map_or(cpus, |threads| threads as usize);
    // Not shared: threads that read the same words would find them in a cache that the other has just filled.
    let words: Vec<Vec<u64>> = (0..threads)
        .map(|_| vec![1_u64; READ_BYTES / size_of::<u64>()])
        .collect();
    let read_seconds = best(&words, |words| {
        (0..READ_PASSES).fold(0, |sum, _| sum ^ read(black_box(words)))
    });
    let fma_seconds = best(&words, |_| multiply_add(black_box(0.999), black_box(0.001)));
    drop(words);
    let read_bytes = (threads * READ_PASSES * READ_BYTES) as f64;
    // A multiply-add is two operations.
    let operations = (threads * FMA_STEPS * SUMS * 2) as f64;
    println!(
        r#"{{"threads":{threads},"memory_read_gb_s":{:.1},"f32_fma_gflop_s":{:.1}}}"#,
        read_bytes / read_seconds / 1e9,
        operations / fma_seconds / 1e9
    );
    ExitCode::SUCCESS
}

#[expect(
    clippy::print_stderr,
    reason = "a command-line program says here why it gave no result"
)]
fn refuse() -> ExitCode {
    eprintln!(
        "machine-limits: built without this CPU's multiply-add instructions; build it with\n  \
         cargo rustc --release -p system-tests --bin machine-limits -- -C target-cpu=native"
    );
    ExitCode::FAILURE
}

/// Seconds that the fastest try took in which one thread for each of `inputs` ran `work` on it, all at once.
fn best<T: Send>(inputs: &[Vec<u64>], work: impl Fn(&[u64]) -> T + Sync) -> f64 {
    let once = || {
        let start = Instant::now();
        let work = &work;
        thread::scope(|scope| {
            for input in inputs {
                scope.spawn(move || black_box(work(input)));
            }
        });
        start.elapsed().as_secs_f64()
    };
    (0..TRIES).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// Reads every word once.
fn read(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, word| sum ^ word)
}

/// [`FMA_STEPS`] times [`SUMS`] multiply-adds.
fn multiply_add(factor: f32, addend: f32) -> f32 {
    let mut sums = [1.0_f32; SUMS];
    for _ in 0..FMA_STEPS {
        for sum in &mut sums {
            *sum = sum.mul_add(factor, addend);
        }
    }
    sums.iter().sum()
}
