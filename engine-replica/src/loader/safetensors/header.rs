//! The header of one `.safetensors` file: eight bytes of length, then JSON.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::loader::table::{Placement, Tensors};
use crate::loader::tensor::DType;

/// The format's own limit.
const HEADER_BYTES_MAX: usize = 100_000_000;
const LENGTH_BYTES: usize = 8;
const READABLE: &str = "F32, F16, BF16";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Info {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// A parsed header.
pub(super) struct Header {
    tensors: BTreeMap<String, Info>,
    /// Byte of the file that offsets count from.
    pub(super) data_start: usize,
}

impl Header {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let length = bytes
            .first_chunk()
            .map(|length: &[u8; LENGTH_BYTES]| u64::from_le_bytes(*length));
        let data_start = length
            .and_then(|length| usize::try_from(length).ok())
            .filter(|&length| length <= HEADER_BYTES_MAX)
            .map(|length| length + LENGTH_BYTES)
            .filter(|&end| end <= bytes.len());
        let Some(data_start) = data_start else {
            return Err("is not a safetensors file, or is cut short: its header does not fit; fetch it again".to_owned());
        };
        let text = bytes.get(LENGTH_BYTES..data_start).unwrap_or_default();
        let mut all: BTreeMap<String, serde_json::Value> = serde_json::from_slice(text)
            .map_err(|error| format!("has a damaged safetensors header: {error}"))?;
        all.remove("__metadata__");
        let tensors = all
            .into_iter()
            .map(|(name, value)| match serde_json::from_value(value) {
                Ok(info) => Ok((name, info)),
                Err(error) => Err(format!(
                    "tensor `{name}` has a damaged header entry: {error}"
                )),
            })
            .collect::<Result<_, String>>()?;
        Ok(Self {
            tensors,
            data_start,
        })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    pub(super) fn place_all(&self, file: usize, tensors: &mut Tensors, problems: &mut Vec<String>) {
        // One line for each unreadable type: a quantised checkpoint would fill the screen with its tensors.
        let mut unreadable: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
        for (name, info) in &self.tensors {
            let dtype = match info.dtype.as_str() {
                "F32" => DType::F32,
                "F16" => DType::F16,
                "BF16" => DType::Bf16,
                other => {
                    unreadable.entry(other).or_insert((name, 0)).1 += 1;
                    continue;
                }
            };
            if let Err(problem) = place(name, info, dtype, file, self.data_start, tensors) {
                problems.push(problem);
            }
        }
        for (dtype, (name, count)) in unreadable {
            let more = if count > 1 {
                format!(" (with {} more)", count - 1)
            } else {
                String::new()
            };
            problems.push(format!(
                "tensor `{name}`{more} is {dtype}, which this build does not read; readable: {READABLE}"
            ));
        }
    }
}

fn place(
    name: &str,
    info: &Info,
    dtype: DType,
    file: usize,
    data_start: usize,
    tensors: &mut Tensors,
) -> Result<(), String> {
    let (start, end) = info.data_offsets;
    let elements = info
        .shape
        .iter()
        .try_fold(1_u64, |product, &n| product.checked_mul(n));
    let bytes = elements
        .and_then(|n| usize::try_from(n).ok())
        .filter(|&n| n <= usize::MAX / 4);
    let fits = bytes.is_some_and(|n| end.checked_sub(start) == Some(dtype.bytes(n) as u64));
    if !fits {
        return Err(format!(
            "tensor `{name}` takes bytes {start} to {end}, which does not fit its shape {:?} in {}",
            info.shape, info.dtype
        ));
    }
    let start = (data_start as u64).saturating_add(start);
    tensors.place(
        name,
        &Placement {
            stored_name: name,
            file,
            dtype,
            dims: &info.shape,
            start,
        },
    )
}
