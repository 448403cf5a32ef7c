//! One chat request from its body to its answer: parse, route, attempt, relay.

pub mod attempt;
pub mod events;
pub(crate) mod lane;
pub mod parse;
mod place;
pub mod plain;
pub mod relay;
pub mod route;
mod silence;
pub(crate) mod turn;
