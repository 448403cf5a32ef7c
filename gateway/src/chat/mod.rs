//! One chat request from its body to its answer: parse, limit, route, attempt, relay.

pub mod attempt;
pub mod cut;
pub mod events;
pub(crate) mod lane;
pub mod limit;
pub mod parse;
mod place;
pub mod plain;
pub(crate) mod prompt;
pub mod reasoning;
pub mod relay;
pub mod route;
mod silence;
pub(crate) mod turn;
mod whole;
