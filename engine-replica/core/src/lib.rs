#![forbid(unsafe_code)]
//! The engine's bookkeeping without the engine.
pub mod sampler;

/// Tokens in one KV block.
pub const BLOCK_TOKENS: usize = 16;
