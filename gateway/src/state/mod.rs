//! What the gateway knows: the fleet, and where sessions and prefixes live. All of it is a belief about others,
//! and losing it costs time, never a wrong answer.

pub mod health;
pub mod memory;
pub mod models;
pub mod replicas;
