//! The placement rule: which replica will give this request its first token soonest, all who come after it considered.
//!
//! For every ready replica, in seconds:
//!
//! ```text
//! cost = wait                                    until it begins: tokens sent there without a first token yet, less what it must
//!                                                have done since, at the rate at which its first tokens have been coming
//!      + prefill                                 what it lacks of the prompt, at that rate
//!      + crowding × prefill × (wait + prefill/2) / mean
//!                                                the prefill delays everyone who comes before the queue has drained
//!      + in_flight × mean × requests in flight   sessions that run there will come back with more
//!      + stay × mean                             unless it served this session last
//! ```
//!
//! where `mean` is the prefill of a request of mean size. Sessions of a replica that is gone are dealt out evenly within the margin of
//! `stay`, by what each has taken over lately. What a replica lacks is charged block by block, and a block that a large
//! share of *new conversations* begin with hardly at all: it will be everywhere soon, and must not draw all sessions to one replica.
//!
//! Everything comes from what passes through the gateway anyway: the bytes of prompts, what was sent where, when first tokens came
//! back, how many requests are open. No engine is asked anything. [`rank`] is a function of [`State`] and arguments; time is one of
//! them, and only +, −, ×, ÷ are used, so that every host and build orders alike. One decision takes one table look-up a block and one
//! pass over the replicas.

mod beliefs;
mod block;
mod common;
mod heirs;
mod lru;
mod pace;
mod queue;
mod rank;
mod settings;
mod state;

pub use beliefs::REPLICAS_MAX;
pub use block::Block;
pub use common::{COUNT_BLOCKS_MAX, COUNT_CONVERSATIONS};
pub use lru::Lru;
pub use queue::WAITING_MAX;
pub use rank::{Cost, Ranked, rank};
pub use settings::Settings;
pub(crate) use state::slack_tokens;
pub use state::{Ask, Believed, State};
