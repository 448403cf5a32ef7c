//! A path to a value in a JSON object, such as `metadata.session_id`.

use std::fmt;

use crate::limits::PATH_SEGMENTS_MAX;

/// Names of nested object members, outermost first; at least one, none of them empty. Arrays are not entered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JsonPath {
    segments: Vec<String>,
}

/// Why a text is not a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The text, or a name between two dots, is empty.
    EmptyName,
    /// More names than [`PATH_SEGMENTS_MAX`].
    TooLong,
}

impl JsonPath {
    /// Reads names joined by dots. A name with a dot in it cannot be written.
    ///
    /// # Errors
    /// An empty name, or more than [`PATH_SEGMENTS_MAX`] names.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let segments: Vec<String> = text.split('.').map(str::to_owned).collect();
        if segments.iter().any(String::is_empty) {
            return Err(PathError::EmptyName);
        }
        if segments.len() > PATH_SEGMENTS_MAX {
            return Err(PathError::TooLong);
        }
        Ok(Self { segments })
    }

    /// Number of names, at least 1.
    pub(crate) fn depth(&self) -> usize {
        self.segments.len()
    }

    /// The name at `level`, 0 for the outermost; `None` past the end.
    pub(crate) fn name(&self, level: usize) -> Option<&str> {
        self.segments.get(level).map(String::as_str)
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.segments.join("."))
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyName => f.write_str("expected names joined by dots, none of them empty"),
            Self::TooLong => write!(f, "expected at most {PATH_SEGMENTS_MAX} names"),
        }
    }
}

impl std::error::Error for PathError {}
