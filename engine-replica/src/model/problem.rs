//! What can be wrong with a checkpoint, in words for whoever tries to serve it.

use std::fmt;

use crate::backend::BackendError;

/// Why a model could not be made from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Everything wrong with the checkpoint or its config.
    #[error("the checkpoint does not hold the model that its config describes: {}", list(.0))]
    Checkpoint(Vec<Problem>),
    /// The backend has no room.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// One thing wrong with a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The config contradicts itself.
    Config(String),
    /// A tensor that the family needs is not there.
    Missing {
        /// Hugging Face name.
        name: String,
        /// (rows, cols) that it should have.
        expected: (usize, usize),
    },
    /// A tensor has another shape than the config says.
    Shape {
        /// Hugging Face name.
        name: String,
        /// (rows, cols) that it has.
        found: (usize, usize),
        /// (rows, cols) that it should have.
        expected: (usize, usize),
    },
    /// A tensor's bytes are not as many as its shape and type need, or its rows are no whole quantisation blocks.
    Bytes {
        /// Hugging Face name.
        name: String,
        /// What is wrong.
        what: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(what) => write!(f, "config: {what}"),
            Self::Missing { name, expected } => {
                write!(f, "`{name}` is missing, expected shape {expected:?}")
            }
            Self::Shape {
                name,
                found,
                expected,
            } => {
                write!(f, "`{name}` has shape {found:?}, expected {expected:?}")
            }
            Self::Bytes { name, what } => write!(f, "`{name}` {what}"),
        }
    }
}

/// Problems shown in one message; a checkpoint of another family would otherwise name every tensor.
const PROBLEMS_SHOWN_MAX: usize = 20;

fn list(problems: &[Problem]) -> String {
    let mut lines: Vec<String> = problems
        .iter()
        .take(PROBLEMS_SHOWN_MAX)
        .map(Problem::to_string)
        .collect();
    if let more @ 1.. = problems.len().saturating_sub(PROBLEMS_SHOWN_MAX) {
        lines.push(format!("and {more} more"));
    }
    lines.join("; ")
}
