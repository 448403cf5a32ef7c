#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

pub mod api;
pub mod chat;
pub mod cli;
pub mod config;
pub mod failure;
pub mod layers;
pub mod metrics;
pub mod policy;
pub mod reply;
pub mod serve;
pub mod split_cli;
pub mod stack;
pub mod state;
pub mod up;
pub mod upstream;
