//! The engine thread and the one bounded queue each way between it and the async side (A14).

pub mod job;
pub mod step;
