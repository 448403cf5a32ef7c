#![forbid(unsafe_code)]
//! What the system tests stand on: processes of the built binaries, replicas that a test
//! holds in its hand, plain HTTP clients, metrics read back.
//!
//! Nothing here knows the gateway's or the replica's code: the product is driven through its sockets and signals alone.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "this package is test code as a whole: a failed expectation is its result"
)]

pub mod assets;
pub mod client;
pub mod fleet;
pub mod front;
pub mod http;
pub mod prom;
pub mod scripted;
