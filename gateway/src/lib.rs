#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

pub mod config;
pub mod failure;
pub mod metrics;
pub mod serve;
pub mod state;
pub mod upstream;
