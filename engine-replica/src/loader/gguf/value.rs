//! Metadata of a GGUF file: typed values by key.

use std::collections::BTreeMap;

use super::read::Reader;

/// Elements of one array: the largest vocabularies have 256 k tokens and 500 k merges.
const ARRAY_LEN_MAX: usize = 2 << 20;
/// Arrays within arrays.
const ARRAY_DEPTH_MAX: usize = 3;

/// One metadata value; integers of all widths are one case.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Integer(i128),
    Float(f64),
    Bool(bool),
    Text(String),
    Array(Vec<Value>),
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Bool(_) => "a boolean",
            Value::Text(_) => "a string",
            Value::Array(_) => "an array",
        }
    }

    /// Reads a value of GGUF's type number `kind`.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        kind: u32,
        key: &str,
        depth: usize,
    ) -> Result<Self, String> {
        let int = |value: i128| Ok(Value::Integer(value));
        match kind {
            0 => int(u8::from_le_bytes(reader.array(key)?).into()),
            1 => int(i8::from_le_bytes(reader.array(key)?).into()),
            2 => int(u16::from_le_bytes(reader.array(key)?).into()),
            3 => int(i16::from_le_bytes(reader.array(key)?).into()),
            4 => int(u32::from_le_bytes(reader.array(key)?).into()),
            5 => int(i32::from_le_bytes(reader.array(key)?).into()),
            6 => Ok(Value::Float(f32::from_le_bytes(reader.array(key)?).into())),
            7 => match reader.array(key)? {
                [0] => Ok(Value::Bool(false)),
                [1] => Ok(Value::Bool(true)),
                [other] => Err(format!(
                    "`{key}` holds {other} for a boolean, expected 0 or 1"
                )),
            },
            8 => Ok(Value::Text(reader.string(key)?.to_owned())),
            9 => Self::read_array(reader, key, depth),
            10 => int(u64::from_le_bytes(reader.array(key)?).into()),
            11 => int(i64::from_le_bytes(reader.array(key)?).into()),
            12 => Ok(Value::Float(f64::from_le_bytes(reader.array(key)?))),
            other => Err(format!(
                "`{key}` has the unknown value type {other}, expected 0 to 12"
            )),
        }
    }

    fn read_array(reader: &mut Reader<'_>, key: &str, depth: usize) -> Result<Self, String> {
        if depth >= ARRAY_DEPTH_MAX {
            return Err(format!(
                "`{key}` has arrays nested deeper than {ARRAY_DEPTH_MAX}"
            ));
        }
        let kind = reader.u32(key)?;
        let count = reader.u64(key)?;
        // Every element takes at least a byte, so what is left of the file bounds the allocation too.
        let count = usize::try_from(count)
            .ok()
            .filter(|&n| n <= ARRAY_LEN_MAX && n <= reader.left())
            .ok_or_else(|| {
                format!(
                    "`{key}` is an array of {count} elements, expected at most {ARRAY_LEN_MAX} and no more than the \
                     file has bytes left"
                )
            })?;
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(Value::read(reader, kind, key, depth + 1)?);
        }
        Ok(Value::Array(values))
    }
}

/// All metadata of a file. A getter gives `None` for a key that is absent and an error for one of another type.
#[derive(Clone, Debug, Default)]
pub(super) struct Metadata(pub(super) BTreeMap<String, Value>);

impl Metadata {
    fn get<T>(
        &self,
        key: &str,
        wanted: &str,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        match self.0.get(key) {
            None => Ok(None),
            Some(value) => convert(value)
                .map(Some)
                .ok_or_else(|| format!("`{key}` is {}, expected {wanted}", value.kind())),
        }
    }

    pub(super) fn size(&self, key: &str) -> Result<Option<usize>, String> {
        self.get(key, "an integer from 0", |value| match value {
            Value::Integer(n) => usize::try_from(*n).ok(),
            _ => None,
        })
    }

    pub(super) fn token(&self, key: &str) -> Result<Option<u32>, String> {
        self.get(key, "a token id", |value| match value {
            Value::Integer(n) => u32::try_from(*n).ok(),
            _ => None,
        })
    }

    pub(super) fn float(&self, key: &str) -> Result<Option<f64>, String> {
        self.get(key, "a number", |value| match value {
            Value::Float(x) => Some(*x),
            _ => None,
        })
    }

    pub(super) fn bool(&self, key: &str) -> Result<Option<bool>, String> {
        self.get(key, "a boolean", |value| match value {
            Value::Bool(b) => Some(*b),
            _ => None,
        })
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, String> {
        match self.0.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(format!("`{key}` is {}, expected a string", other.kind())),
        }
    }

    /// An array of strings.
    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, String> {
        self.get(key, "an array of strings", |value| match value {
            Value::Array(values) => values
                .iter()
                .map(|value| match value {
                    Value::Text(text) => Some(text.clone()),
                    _ => None,
                })
                .collect(),
            _ => None,
        })
    }

    /// An array of integers.
    pub(super) fn integers(&self, key: &str) -> Result<Option<Vec<i128>>, String> {
        self.get(key, "an array of integers", |value| match value {
            Value::Array(values) => values
                .iter()
                .map(|value| match value {
                    Value::Integer(n) => Some(*n),
                    _ => None,
                })
                .collect(),
            _ => None,
        })
    }
}
