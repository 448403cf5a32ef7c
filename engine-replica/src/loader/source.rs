//! Which model is asked for: a path, or the one in this program.

use std::ffi::OsString;
use std::path::PathBuf;

use super::folder::{CompiledIn, Folder};
use super::{Checkpoint, LoadError, open, safetensors};

/// What `--model` says for the model that is compiled in. A file or folder of this name is `./builtin`.
pub const BUILTIN: &str = "builtin";

/// A tiny model that reasons; its own README says what it is.
static ABACUS: CompiledIn = CompiledIn {
    name: "abacus",
    asked_for_as: BUILTIN,
    files: &[
        (
            "config.json",
            include_bytes!("../../models/abacus/config.json"),
        ),
        (
            "generation_config.json",
            include_bytes!("../../models/abacus/generation_config.json"),
        ),
        (
            "model.safetensors",
            include_bytes!("../../models/abacus/model.safetensors"),
        ),
        (
            "tokenizer.json",
            include_bytes!("../../models/abacus/tokenizer.json"),
        ),
        (
            "tokenizer_config.json",
            include_bytes!("../../models/abacus/tokenizer_config.json"),
        ),
    ],
};

/// Where a model comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSource {
    /// The model that is compiled into this program.
    Builtin,
    /// A GGUF file or a Hugging Face folder.
    Path(PathBuf),
}

impl ModelSource {
    /// Opens the checkpoint.
    ///
    /// # Errors
    /// Every problem found in its files.
    pub fn open(&self) -> Result<Checkpoint, LoadError> {
        match self {
            ModelSource::Builtin => safetensors::open(Folder::CompiledIn(&ABACUS)),
            ModelSource::Path(path) => open(path),
        }
    }
}

impl From<OsString> for ModelSource {
    fn from(text: OsString) -> Self {
        if text == BUILTIN {
            return ModelSource::Builtin;
        }
        ModelSource::Path(text.into())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::loader::tensor::TensorSource;

    #[test]
    fn the_word_builtin_names_the_model_within_and_all_else_a_path() {
        assert_eq!(
            ModelSource::from(OsString::from("builtin")),
            ModelSource::Builtin
        );
        for path in ["./builtin", "builtin.gguf", "Builtin", ""] {
            let source = ModelSource::from(OsString::from(path));
            assert_eq!(source, ModelSource::Path(path.into()));
        }
    }

    #[test]
    fn the_model_within_is_the_folder_of_the_repository() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/abacus");
        let (within, on_disk) = (ModelSource::Builtin.open().unwrap(), open(&folder).unwrap());
        assert_eq!(within.name, on_disk.name);
        assert_eq!(within.weights.fingerprint, on_disk.weights.fingerprint);
        assert_eq!(within.eos, on_disk.eos);
        assert_eq!(within.generation, on_disk.generation);
        let names = within.weights.tensors.names();
        assert_eq!(names, on_disk.weights.tensors.names());
        for name in names {
            let data = |weights: &crate::loader::Weights| {
                weights.tensors.tensor(name).unwrap().data.to_vec()
            };
            assert_eq!(data(&within.weights), data(&on_disk.weights), "{name}");
        }
    }
}
