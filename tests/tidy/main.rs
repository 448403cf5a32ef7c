//! The invariants of ARCHITECTURE.md that reading the sources can check, and the habits of CONTRIBUTING.md.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test code: a failed expectation is its result"
)]

mod arrows;
mod names;
mod prose;
mod sources;
