//! The placement rule (being written).
mod block_hasher;
pub use block_hasher::BlockHasher;
