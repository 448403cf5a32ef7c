//! The header of one GGUF file: metadata and the table of tensors.

use super::read::Reader;
use super::value::{Metadata, Value};

const METADATA_ENTRIES_MAX: u64 = 16_384;
const TENSORS_MAX: u64 = 1 << 18;
const DIMENSIONS_MAX: u32 = 4;
/// The format's own default, in bytes.
const ALIGNMENT_DEFAULT: usize = 32;
const ALIGNMENT_MAX: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct Header {
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<TensorInfo>,
    /// Byte of the file that tensor offsets count from.
    pub(super) data_start: usize,
}

#[derive(Debug)]
pub(super) struct TensorInfo {
    pub(super) name: String,
    /// Innermost dimension first, as the file has them.
    pub(super) dims: Vec<u64>,
    /// GGML's type number.
    pub(super) kind: u32,
    /// Bytes from `data_start`; a multiple of the alignment.
    pub(super) offset: u64,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Header, String> {
    let mut reader = Reader::new(bytes);
    if reader.take(4, "the magic number").ok() != Some(b"GGUF".as_slice()) {
        return Err("is not a GGUF file: it does not begin with `GGUF`".to_owned());
    }
    check_version(reader.u32("the version")?)?;
    let tensor_count = bounded(reader.u64("the tensor count")?, TENSORS_MAX, "tensors")?;
    let entry_count = bounded(
        reader.u64("the metadata count")?,
        METADATA_ENTRIES_MAX,
        "metadata entries",
    )?;

    let mut metadata = Metadata::default();
    for _ in 0..entry_count {
        let key = reader.string("a metadata key")?;
        let kind = reader.u32(key)?;
        let value = Value::read(&mut reader, kind, key, 0)?;
        if metadata.0.insert(key.to_owned(), value).is_some() {
            return Err(format!("metadata key `{key}` is there twice"));
        }
    }
    let alignment = metadata
        .size("general.alignment")?
        .unwrap_or(ALIGNMENT_DEFAULT);
    if !alignment.is_power_of_two() || alignment > ALIGNMENT_MAX {
        return Err(format!(
            "`general.alignment` is {alignment}, expected a power of two up to {ALIGNMENT_MAX}"
        ));
    }
    let mut tensors = Vec::new();
    for _ in 0..tensor_count {
        tensors.push(tensor_info(&mut reader, alignment)?);
    }
    let data_start = reader.at().next_multiple_of(alignment);
    Ok(Header {
        metadata,
        tensors,
        data_start,
    })
}

fn check_version(version: u32) -> Result<(), String> {
    match version {
        2 | 3 => Ok(()),
        1 => Err("is GGUF version 1, which this build does not read; convert the model again with a current \
                  llama.cpp, which writes version 3"
            .to_owned()),
        other if matches!(other.swap_bytes(), 1..=3) => {
            Err("is a big-endian GGUF file, which this build does not read; use the little-endian one".to_owned())
        }
        other => Err(format!("is GGUF version {other}, expected 2 or 3")),
    }
}

fn bounded(count: u64, max: u64, what: &str) -> Result<u64, String> {
    if count > max {
        return Err(format!(
            "claims {count} {what}, expected at most {max}; the file is damaged"
        ));
    }
    Ok(count)
}

fn tensor_info(reader: &mut Reader<'_>, alignment: usize) -> Result<TensorInfo, String> {
    let name = reader.string("a tensor name")?.to_owned();
    let count = reader.u32(&name)?;
    if count == 0 || count > DIMENSIONS_MAX {
        return Err(format!(
            "tensor `{name}` has {count} dimensions, expected 1 to {DIMENSIONS_MAX}"
        ));
    }
    let dims = (0..count)
        .map(|_| reader.u64(&name))
        .collect::<Result<Vec<u64>, String>>()?;
    let kind = reader.u32(&name)?;
    let offset = reader.u64(&name)?;
    if !offset.is_multiple_of(alignment as u64) {
        return Err(format!(
            "tensor `{name}` lies at offset {offset}, expected a multiple of {alignment}"
        ));
    }
    Ok(TensorInfo {
        name,
        dims,
        kind,
        offset,
    })
}
