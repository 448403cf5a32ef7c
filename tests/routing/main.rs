//! Routing as clients meet it: the built gateway in front of replicas with real prefix caches, judged by what replicas deliver.
//!
//! Nothing here knows how the gateway decides. Figures that are worth reading are printed: run with `--no-capture`.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "test code: a failed expectation is its result, and so are the figures it prints"
)]

mod airline;
mod death;
mod memory;
mod play;
mod router;
mod shared_prompt;
mod skew;
mod talk;
