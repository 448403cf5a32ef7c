//! The engine thread and the one bounded queue each way between it and the async side (A14).
//!
//! `EngineThread::start` gives an `EngineHandle`; `EngineHandle::submit` turns a `Job` into a `JobStream` of `JobEvent`s.

mod answer;
pub mod config;
pub mod handle;
pub mod job;
mod outbox;
mod shared;
pub mod stats;
pub mod step;
pub mod stream;
pub mod thread;
mod worker;

#[cfg(test)]
mod tests;
