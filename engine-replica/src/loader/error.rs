//! Why a checkpoint was refused.

use std::fmt;
use std::path::{Path, PathBuf};

/// Problems that a message lists before it only counts: a file of the wrong kind can have one for each tensor.
const PROBLEMS_SHOWN_MAX: usize = 20;

/// Why a model could not be loaded: every problem found, not only the first.
#[derive(Debug)]
pub struct LoadError {
    path: PathBuf,
    problems: Vec<String>,
}

impl LoadError {
    pub(crate) fn new(path: &Path, problems: Vec<String>) -> Self {
        Self {
            path: path.to_owned(),
            problems,
        }
    }

    pub(crate) fn one(path: &Path, problem: impl Into<String>) -> Self {
        Self::new(path, vec![problem.into()])
    }

    /// The file or folder that was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with it, one sentence each, without the path.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        if let [problem] = self.problems.as_slice() {
            return write!(f, "{path}: {problem}");
        }
        write!(f, "{path}: {} problems", self.problems.len())?;
        for problem in self.problems.iter().take(PROBLEMS_SHOWN_MAX) {
            write!(f, "\n  {problem}")?;
        }
        match self.problems.len().saturating_sub(PROBLEMS_SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

impl std::error::Error for LoadError {}
