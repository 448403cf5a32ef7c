//! Why a JSON text was refused.

use std::fmt;

/// The first thing wrong with a JSON text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanError {
    /// Byte offset in the text at which reading stopped.
    pub offset: usize,
    /// The top-level field being read, where there is one: OpenAI's `param`.
    pub field: Option<&'static str>,
    /// What was wrong there.
    pub problem: ScanProblem,
}

/// What was wrong at one place of a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanProblem {
    /// Something else stood there; the text names what is allowed.
    Expected(&'static str),
    /// The bytes from there on are not UTF-8.
    NotUtf8,
    /// More nested objects and arrays than [`crate::limits::JSON_DEPTH_MAX`].
    TooDeep,
    /// More than the given number of elements.
    TooMany(usize),
    /// A field that decides something stands there a second time. Readers disagree about which one counts
    /// (some take the last, some refuse), so a gateway that picked one could be led past.
    Duplicate,
}

impl ScanError {
    pub(crate) fn expected(offset: usize, what: &'static str) -> Self {
        Self {
            offset,
            field: None,
            problem: ScanProblem::Expected(what),
        }
    }

    pub(crate) fn new(offset: usize, problem: ScanProblem) -> Self {
        Self {
            offset,
            field: None,
            problem,
        }
    }

    pub(crate) fn in_field(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}", self.offset)?;
        if let Some(field) = self.field {
            write!(f, ", in `{field}`")?;
        }
        match self.problem {
            ScanProblem::Expected(what) => write!(f, ": expected {what}"),
            ScanProblem::NotUtf8 => write!(f, ": expected UTF-8 text"),
            ScanProblem::TooDeep => write!(
                f,
                ": expected at most {} nested objects and arrays",
                crate::limits::JSON_DEPTH_MAX
            ),
            ScanProblem::TooMany(limit) => write!(f, ": expected at most {limit} elements"),
            ScanProblem::Duplicate => write!(f, ": expected the field once; remove its repetition"),
        }
    }
}

impl std::error::Error for ScanError {}
