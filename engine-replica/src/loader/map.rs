//! Files mapped into memory, so that weights are read where they lie and shared between processes.
#![expect(
    unsafe_code,
    reason = "mapping a file is unsafe: another process may change it under the map"
)]

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use super::error::LoadError;

/// A whole file, read only.
#[derive(Debug)]
pub(crate) enum ModelFile {
    /// On disk.
    Mapped(Mmap),
    /// In this program, whose own file the kernel maps and shares just so.
    CompiledIn(&'static [u8]),
}

impl ModelFile {
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        let cannot =
            |error: std::io::Error| LoadError::one(path, format!("cannot be read: {error}"));
        let file = File::open(path).map_err(cannot)?;
        // SAFETY: the map is read only and all offsets into it are checked against its length when it is made. A
        // process that shortens or rewrites the file afterwards can make reads fail or give other numbers; model
        // files are written once and then renamed into place, and the alternative is a private copy of gigabytes
        // in every replica.
        let map = unsafe { Mmap::map(&file) }.map_err(cannot)?;
        Ok(Self::Mapped(map))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::CompiledIn(bytes) => bytes,
        }
    }
}
