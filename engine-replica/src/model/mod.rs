//! Model families over a `Backend`.

pub mod config;
