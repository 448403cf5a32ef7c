#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! The engine's bookkeeping without the engine: KV blocks, prefix index, step plan, sampler, text stream, reasoning and
//! its budget.
//!
//! Pure: no socket, file, clock, randomness, thread or async. Seeds and everything else that varies are arguments, so
//! each decision can be replayed and property-tested.

pub mod answer_text;
pub mod block_key;
pub mod block_pool;
pub mod budget;
pub mod eviction;
pub mod fairness;
pub mod lease;
pub mod plan;
pub mod prefix_index;
pub mod sampler;
pub mod sequence;
pub mod text_stream;

/// Tokens of one KV block. Prefixes are shared in whole blocks of this size.
pub const BLOCK_TOKENS: usize = 16;
