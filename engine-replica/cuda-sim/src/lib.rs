//! A GPU for tests: folders with a libcuda and a libnvrtc that run the product's kernels on the CPU, and a way to run a test again
//! with them in front of the machine's own.
//!
//! Device and shared memory begin as NaN; threads run in an order drawn from a seed; AddressSanitizer and ThreadSanitizer can look
//! on. What this cannot show: speed, the order of work on several streams, and what differs between a GPU's instructions and the
//! roundings that they are defined by.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Set in a process that runs on the simulated GPU.
const INSIDE: &str = "CUDA_SIM_INSIDE";

/// Who looks on while kernels run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Nobody: fastest.
    Plain,
    /// AddressSanitizer: reads and writes outside of what was allocated.
    Address,
    /// ThreadSanitizer: two threads at one place with no barrier between.
    Thread,
}

/// In which order a block's threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// At random; with an even seed one warp at a time runs far ahead.
    Random(u64),
    /// Lowest first.
    Forward,
    /// Highest first.
    Reverse,
}

/// How a test runs.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Who looks on.
    pub variant: Variant,
    /// Which thread is next.
    pub order: Order,
    /// A bug of `shim/planted.def` that is switched on.
    pub bug: Option<&'a str>,
}

/// What became of a test.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Whether it passed.
    pub passed: bool,
    /// All that it printed.
    pub text: String,
}

/// Whether this process was started by `Run::test`.
pub fn inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Why there is no simulated GPU on this machine, or `None` where there is one.
pub fn missing() -> Option<&'static str> {
    let why = env!("CUDA_SIM_MISSING");
    (!why.is_empty()).then_some(why)
}

/// Why `Variant::Thread` cannot run on this machine, or `None` where it can: some containers forbid what it needs.
pub fn thread_missing() -> Option<&'static str> {
    let fixed = Command::new("setarch").args(["-R", "true"]).output();
    let allowed = fixed.is_ok_and(|output| output.status.success());
    (!allowed).then_some(
        "ThreadSanitizer needs memory at fixed places, and `setarch -R` does not give it here",
    )
}

/// The folder with a variant's libraries, for `LD_LIBRARY_PATH`.
pub fn folder(variant: Variant) -> PathBuf {
    let name = match variant {
        Variant::Plain => "plain",
        Variant::Address => "address",
        Variant::Thread => "thread",
    };
    Path::new(env!("CUDA_SIM_FOLDER")).join(name)
}

/// A folder with a libcuda that lacks nearly all of its functions.
pub fn lacking() -> PathBuf {
    Path::new(env!("CUDA_SIM_FOLDER")).join("lacking")
}

impl Run<'_> {
    /// The variant with threads in an order drawn from `seed`.
    pub fn random(variant: Variant, seed: u64) -> Self {
        Self {
            variant,
            order: Order::Random(seed),
            bug: None,
        }
    }

    /// Runs one test of the calling test binary in a process of its own, with `cache` as the user's cache folder.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn test(&self, name: &str, cache: &Path) -> std::io::Result<Outcome> {
        let mut command = self.command(&std::env::current_exe()?)?;
        command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
        command.env(INSIDE, "1").env("XDG_CACHE_HOME", cache);
        let output = command.output()?;
        let text = [output.stdout, output.stderr].concat();
        Ok(Outcome {
            passed: output.status.success(),
            text: String::from_utf8_lossy(&text).into_owned(),
        })
    }

    /// A command that runs `program` on the simulated GPU.
    ///
    /// # Errors
    /// When the compiler cannot be asked for its sanitizer's library.
    pub fn command(&self, program: &Path) -> std::io::Result<Command> {
        let preload = match self.variant {
            Variant::Plain => None,
            Variant::Address => Some(library("libasan.so")?),
            Variant::Thread => Some(library("libtsan.so")?),
        };
        // The thread sanitizer wants memory where it always lay.
        let mut command = if self.variant == Variant::Thread {
            let mut command = Command::new("setarch");
            command.args(["-R", "env"]);
            command
        } else {
            Command::new("env")
        };
        if let Some(preload) = preload {
            command.arg(format!("LD_PRELOAD={preload}"));
        }
        command.arg(program);
        command.env("LD_LIBRARY_PATH", folder(self.variant));
        let (order, seed) = match self.order {
            Order::Random(seed) => ("0", seed),
            Order::Forward => ("1", 1),
            Order::Reverse => ("2", 1),
        };
        command
            .env("CUDA_SIM_ORDER", order)
            .env("CUDA_SIM_SEED", seed.to_string())
            .env("CUDA_SIM_PLANT", self.bug.unwrap_or(""))
            .env(
                "ASAN_OPTIONS",
                "detect_leaks=0:detect_stack_use_after_return=0",
            )
            // Rust's own code is not instrumented, so what it does between threads would look like races.
            .env(
                "TSAN_OPTIONS",
                "halt_on_error=1:report_signal_unsafe=0:ignore_noninstrumented_modules=1:\
                 ignore_interceptors_accesses=1",
            );
        Ok(command)
    }
}

/// Where the compiler keeps a library of its own.
fn library(name: &str) -> std::io::Result<String> {
    let output = Command::new("c++")
        .arg(format!("-print-file-name={name}"))
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
