//! The engine thread and the one bounded queue each way between it and the async side (A14).

pub mod handle;
pub mod job;
mod shared;
pub mod stats;
pub mod step;
pub mod stream;
