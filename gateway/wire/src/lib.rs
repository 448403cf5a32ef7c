#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

pub mod chunk;
pub mod error;
pub mod families;
pub mod gather;
mod json;
pub mod limits;
pub mod order;
pub mod reply;
pub mod reshape;
pub mod role;
pub mod scan;
pub mod splice;
pub mod split;
pub mod sse;
pub mod tally;
pub mod thinking;
pub mod usage;

pub use json::{JsonPath, PathError, ScanError, ScanProblem};
