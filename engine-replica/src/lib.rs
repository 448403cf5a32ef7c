//! One engine replica: HTTP in front, scheduler and prefix cache in the middle, a model over a `Backend` below.
//!
//! A request walks `serve` → `api` → `template` → `tokenizer` → `engine::handle` ⇢ engine thread
//! (`replica_core::plan` → `model::forward` over `backend` → `replica_core::sampler`) ⇢ `api` → SSE.

pub mod api;
pub mod backend;
pub mod bench;
pub mod cli;
pub mod engine;
pub mod failure;
pub mod loader;
pub mod metrics;
pub mod model;
#[cfg(test)]
mod scripted;
pub mod serve;
pub mod signals;
pub mod start;
pub mod template;
pub mod tokenizer;
