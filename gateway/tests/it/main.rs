//! The whole gateway against scripted replicas in memory: what clients see, what replicas get, what is counted.

mod failover;
mod fleet;
mod limits;
mod listener;
mod replica;
mod sessions;
mod streams;
mod up;
