//! The tensors of a checkpoint by name, over one file or several.

use std::collections::HashMap;

use super::map::ModelFile;
use super::tensor::{DType, QUANT_BLOCK, TensorSource, TensorView};

/// All tensors of a checkpoint, in place in their files.
#[derive(Debug)]
pub struct Tensors {
    files: Vec<ModelFile>,
    /// Invariant: `start + dtype.bytes(rows * cols)` lies inside `files[file]`; `place` is the only way in.
    entries: HashMap<String, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    file: usize,
    dtype: DType,
    rows: usize,
    cols: usize,
    start: usize,
    bytes: usize,
}

/// Where a file says that a tensor lies.
pub(super) struct Placement<'a> {
    /// The name in the file, for messages.
    pub(super) stored_name: &'a str,
    pub(super) file: usize,
    pub(super) dtype: DType,
    /// Outermost dimension first.
    pub(super) dims: &'a [u64],
    /// Bytes from the start of the file.
    pub(super) start: u64,
}

impl Tensors {
    pub(super) fn new(files: Vec<ModelFile>) -> Self {
        Self {
            files,
            entries: HashMap::new(),
        }
    }

    /// Takes a tensor in under `name` once its shape and place are proved good.
    pub(super) fn place(&mut self, name: &str, placement: &Placement<'_>) -> Result<(), String> {
        let Placement {
            stored_name,
            file,
            dtype,
            dims,
            start,
        } = *placement;
        let (rows, cols) = match dims {
            [cols] => (1, *cols),
            [rows, cols] => (*rows, *cols),
            _ => {
                return Err(format!(
                    "tensor `{stored_name}` has {} dimensions, expected 1 or 2",
                    dims.len()
                ));
            }
        };
        let (Ok(rows), Ok(cols)) = (usize::try_from(rows), usize::try_from(cols)) else {
            return Err(format!("tensor `{stored_name}` is too large: {dims:?}"));
        };
        let quantised = matches!(dtype, DType::Q8_0 | DType::Q4_0 | DType::Q4_1);
        if quantised && !cols.is_multiple_of(QUANT_BLOCK) {
            return Err(format!(
                "tensor `{stored_name}` is {dtype:?} with rows of {cols} elements, expected a multiple of {QUANT_BLOCK}"
            ));
        }
        // A quarter of the address space leaves room for the widest type's 4 bytes an element.
        let elements = rows.checked_mul(cols).filter(|&n| n <= usize::MAX / 4);
        let bytes = elements.map(|n| dtype.bytes(n));
        let held = self.files.get(file).map_or(0, |file| file.bytes().len());
        let start = usize::try_from(start).ok();
        let end = bytes
            .zip(start)
            .and_then(|(bytes, start)| start.checked_add(bytes));
        let (Some(bytes), Some(start), Some(end)) = (bytes, start, end) else {
            return Err(format!("tensor `{stored_name}` is too large: {dims:?}"));
        };
        if end > held {
            return Err(format!(
                "tensor `{stored_name}` ends at byte {end} of a file of {held} bytes; the file is cut short, fetch it again"
            ));
        }
        let entry = Entry {
            file,
            dtype,
            rows,
            cols,
            start,
            bytes,
        };
        match self.entries.insert(name.to_owned(), entry) {
            None => Ok(()),
            Some(_) => Err(format!("tensor `{stored_name}` is there twice")),
        }
    }

    /// `(rows, cols)` of a tensor.
    pub(super) fn shape(&self, name: &str) -> Option<(usize, usize)> {
        self.entries.get(name).map(|entry| (entry.rows, entry.cols))
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.entries.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

impl TensorSource for Tensors {
    fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        let entry = self.entries.get(name)?;
        let data = self
            .files
            .get(entry.file)?
            .bytes()
            .get(entry.start..)?
            .get(..entry.bytes)?;
        Some(TensorView {
            dtype: entry.dtype,
            rows: entry.rows,
            cols: entry.cols,
            data,
        })
    }
}
