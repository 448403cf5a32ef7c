//! Where the files of a Hugging Face folder are: on disk, or in this program.

use std::io::ErrorKind;
use std::path::Path;

use super::error::LoadError;
use super::map::ModelFile;

/// A folder whose files are looked up by name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Folder<'a> {
    OnDisk(&'a Path),
    CompiledIn(&'static CompiledIn),
}

/// A folder that was compiled into this program.
#[derive(Debug)]
pub(super) struct CompiledIn {
    /// What the model is called.
    pub(super) name: &'static str,
    /// How it is asked for, which stands for its path in messages.
    pub(super) asked_for_as: &'static str,
    /// Names and contents.
    pub(super) files: &'static [(&'static str, &'static [u8])],
}

impl CompiledIn {
    fn file(&self, name: &str) -> Option<&'static [u8]> {
        let (_, bytes) = self.files.iter().find(|(file, _)| *file == name)?;
        Some(bytes)
    }
}

impl Folder<'_> {
    /// For messages.
    pub(super) fn path(&self) -> &Path {
        match self {
            Folder::OnDisk(path) => path,
            Folder::CompiledIn(folder) => Path::new(folder.asked_for_as),
        }
    }

    /// The folder's own name, which is its model's.
    pub(super) fn name(&self) -> String {
        match self {
            Folder::OnDisk(path) => {
                let path = path.canonicalize().unwrap_or_else(|_| (*path).to_owned());
                path.file_name().map_or_else(
                    || "model".to_owned(),
                    |name| name.to_string_lossy().into_owned(),
                )
            }
            Folder::CompiledIn(folder) => folder.name.to_owned(),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Folder::OnDisk(path) => path.join(name).is_file(),
            Folder::CompiledIn(folder) => folder.file(name).is_some(),
        }
    }

    /// The text of a file; `None` where there is no such file.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, LoadError> {
        let read = match self {
            Folder::OnDisk(path) => std::fs::read(path.join(name)),
            Folder::CompiledIn(folder) => folder
                .file(name)
                .map(<[u8]>::to_vec)
                .ok_or_else(|| ErrorKind::NotFound.into()),
        };
        let damaged = |what: String| LoadError::one(&self.path().join(name), what);
        match read {
            Ok(bytes) => String::from_utf8(bytes)
                .map(Some)
                .map_err(|error| damaged(format!("is not text: {error}"))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(damaged(format!("cannot be read: {error}"))),
        }
    }

    /// A file of weights, in place.
    pub(super) fn weights(&self, name: &str) -> Result<ModelFile, LoadError> {
        let path = self.path().join(name);
        match self {
            Folder::OnDisk(_) => ModelFile::open(&path),
            Folder::CompiledIn(folder) => folder
                .file(name)
                .map(ModelFile::CompiledIn)
                .ok_or_else(|| LoadError::one(&path, "was not compiled in")),
        }
    }
}
