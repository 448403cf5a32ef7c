//! One engine replica: HTTP in front, scheduler and prefix cache in the middle, a model over a `Backend` below.
//!
//! A request walks `serve` → `api` → `template` → `tokenizer` → `engine::handle` ⇢ engine thread
//! (`replica_core::plan` → `model::forward` over `backend` → `replica_core::sampler`) ⇢ `api` → SSE.

pub mod backend;
pub mod engine;
pub mod loader;
pub mod model;
pub mod template;
pub mod tokenizer;
