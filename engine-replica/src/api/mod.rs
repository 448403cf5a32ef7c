//! The OpenAI-compatible HTTP interface.
pub mod request;
