#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

pub mod decide;
pub mod difficulty;
pub mod estimate;
pub mod explain;
pub mod key;
pub mod lanes;
pub mod ledger;
pub mod models;
mod nearest;
pub mod placement;
pub mod policy;
pub mod prefix;
mod problem;
pub mod reason;
pub mod rendezvous;
pub mod replay;
mod schema;
pub mod session;

pub use decide::{Decision, Features, PinAction, PrefixSeen, ReplicaView, Seen, decide};
pub use key::{PlacementKey, PrefixKey, ReplicaId, SessionKey};
pub use policy::Policy;
pub use problem::{Problem, report};
pub use reason::Reason;
pub use schema::{Change, DEFAULT_POLICY, changes, compile, compile_for, fingerprint, json_schema};
