//! Reads the fields of one JSON object and keeps every problem on the way, so that a client hears of all at once.

use serde_json::{Map, Value};

use crate::failure::{Problem, ProblemCode};

/// A request with more problems than this is told of the first ones only.
pub(super) const PROBLEMS_MAX: usize = 16;
/// Longest piece of a client's value that is repeated in a message.
const SHOWN_CHARS_MAX: usize = 40;

/// The numbers that a field may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) min: f64,
    /// Whether `min` itself is allowed.
    pub(super) min_included: bool,
    pub(super) max: f64,
}

impl Bounds {
    /// `min` to `max`, both allowed.
    pub(super) const fn closed(min: f64, max: f64) -> Bounds {
        Bounds {
            min,
            min_included: true,
            max,
        }
    }

    /// Above `min`, up to `max`.
    pub(super) const fn above(min: f64, max: f64) -> Bounds {
        Bounds {
            min,
            min_included: false,
            max,
        }
    }

    fn holds(self, value: f64) -> bool {
        (value > self.min || (self.min_included && value == self.min)) && value <= self.max
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.min_included {
            write!(f, "from {} to {}", self.min, self.max)
        } else {
            write!(f, "above {} and at most {}", self.min, self.max)
        }
    }
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    /// Notes one problem; those past `PROBLEMS_MAX` are dropped.
    pub(super) fn push(&mut self, param: String, code: ProblemCode, message: String) {
        if self.0.len() < PROBLEMS_MAX {
            self.0.push(Problem {
                param,
                message,
                code,
            });
        }
    }

    /// `path` is `value`, expected …
    pub(super) fn invalid(&mut self, path: &str, value: &Value, expected: &str) {
        let message = format!("`{path}` is `{}`, expected {expected}", shown(value));
        self.push(path.to_owned(), ProblemCode::InvalidValue, message);
    }

    /// `path` is missing; what it should hold.
    pub(super) fn missing(&mut self, path: &str, expected: &str) {
        let message = format!("`{path}` is missing, expected {expected}");
        self.push(path.to_owned(), ProblemCode::Missing, message);
    }

    /// `path` is known and cannot be honoured.
    pub(super) fn unsupported(&mut self, path: &str, value: &Value, instead: &str) {
        let message = format!("`{path}` is `{}`: {instead}", shown(value));
        self.push(path.to_owned(), ProblemCode::Unsupported, message);
    }

    /// All of them, in the order found.
    pub(super) fn into_vec(self) -> Vec<Problem> {
        self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The fields of one object; a field that is `null` counts as absent.
pub(super) struct Reader<'a> {
    object: &'a Map<String, Value>,
    /// Path of the object, empty at the top.
    at: String,
    pub(super) problems: &'a mut Problems,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        object: &'a Map<String, Value>,
        at: impl Into<String>,
        problems: &'a mut Problems,
    ) -> Reader<'a> {
        Reader {
            object,
            at: at.into(),
            problems,
        }
    }

    /// The full path of a field.
    pub(super) fn path(&self, name: &str) -> String {
        if self.at.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.at)
        }
    }

    /// The field's value, unless absent or null.
    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// Notes that the field holds something else than expected.
    pub(super) fn invalid(&mut self, name: &str, expected: &str) {
        let path = self.path(name);
        if let Some(value) = self.object.get(name) {
            self.problems.invalid(&path, value, expected);
        }
    }

    /// A number within bounds.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "every bound lies far inside f32's range"
    )]
    pub(super) fn number(&mut self, name: &str, bounds: Bounds) -> Option<f32> {
        let value = self.value(name)?;
        match value.as_f64() {
            Some(number) if bounds.holds(number) => Some(number as f32),
            _ => {
                self.invalid(name, &format!("a number {bounds}"));
                None
            }
        }
    }

    /// A whole number within bounds, written with or without a fraction of zero.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to be whole and within bounds"
    )]
    pub(super) fn integer(&mut self, name: &str, min: i64, max: i64) -> Option<i64> {
        let value = self.value(name)?;
        let whole = value.as_i64().or_else(|| {
            value
                .as_f64()
                .filter(|n| n.fract() == 0.0 && n.abs() < 1e15)
                .map(|n| n as i64)
        });
        match whole {
            Some(number) if (min..=max).contains(&number) => Some(number),
            _ => {
                self.invalid(name, &format!("a whole number from {min} to {max}"));
                None
            }
        }
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, name: &str) -> Option<bool> {
        let value = self.value(name)?;
        let read = value.as_bool();
        if read.is_none() {
            self.invalid(name, "true or false");
        }
        read
    }

    /// A string of at most `bytes_max` bytes.
    pub(super) fn string(&mut self, name: &str, bytes_max: usize) -> Option<&'a str> {
        let value = self.value(name)?;
        let read = value.as_str().filter(|text| text.len() <= bytes_max);
        if read.is_none() {
            self.invalid(name, &format!("a string of at most {bytes_max} bytes"));
        }
        read
    }

    /// An object.
    pub(super) fn object(&mut self, name: &str) -> Option<&'a Map<String, Value>> {
        let value = self.value(name)?;
        let read = value.as_object();
        if read.is_none() {
            self.invalid(name, "an object");
        }
        read
    }
}

/// A client's value, short enough for a message.
pub(super) fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(fields) if fields.len() > 2 => format!("an object of {}", fields.len()),
        other => other.to_string(),
    };
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
