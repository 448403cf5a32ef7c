//! Reading JSON where it lies: a cursor that validates every byte it passes and builds nothing.

pub(crate) mod cursor;
mod error;
mod path;
mod special;
pub(crate) mod text;

pub use error::{ScanError, ScanProblem};
pub use path::{JsonPath, PathError};

#[cfg(test)]
mod tests;
