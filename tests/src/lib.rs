#![forbid(unsafe_code)]
//! What the system tests stand on: processes of the built binaries, a plain HTTP client, metrics read back.
//!
//! Nothing here knows the gateway's or the replica's code: the product is driven through its sockets and signals alone.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "this package is test code as a whole: a failed expectation is its result"
)]

pub mod assets;
pub mod fleet;
pub mod http;
pub mod prom;
