//! The product as its users meet it: built binaries, real models, real sockets, the official client.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test code: a failed expectation is its result"
)]

mod budgets;
mod conversation;
mod failover;
mod front_door;
mod same_bits;
mod sharing;
mod support;
mod thinking;
