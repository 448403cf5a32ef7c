//! Towards the replicas: connections, one attempt, probes.

pub mod body;
mod cache_size;
pub mod client;
pub mod connect;
mod link;
pub mod pool;
pub mod probe;
mod quiet;
