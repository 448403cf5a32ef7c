#![forbid(unsafe_code)]
//! The engine's bookkeeping without the engine.
pub mod sampler;
