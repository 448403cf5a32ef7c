//! Models over several files.

use std::path::PathBuf;

use super::open_bytes;
use crate::loader::gguf::writer::{Put, Writer};
use crate::loader::open;
use crate::loader::tensor::TensorSource;

/// Writes a model over three files; gives their paths.
fn split(folder: &std::path::Path) -> Vec<PathBuf> {
    let whole = Writer::tiny("llama");
    (0..3_u16)
        .map(|index| {
            let mut part = if index == 0 {
                whole.clone()
            } else {
                Writer::new()
            };
            part.tensors = whole
                .tensors
                .iter()
                .skip(index.into())
                .step_by(3)
                .cloned()
                .collect();
            part.put("split.no", Put::U16(index));
            part.put("split.count", Put::U16(3));
            let path = folder.join(format!("big-model-{:05}-of-00003.gguf", index + 1));
            std::fs::write(&path, part.bytes()).unwrap();
            path
        })
        .collect()
}

#[test]
fn a_split_model_opens_from_any_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let whole = open_bytes(&Writer::tiny("llama").bytes()).unwrap();
    for path in split(folder.path()) {
        let model = open(&path).unwrap();
        assert_eq!(model.name, "big-model");
        for name in whole.weights.tensors.names() {
            let (a, b) = (
                whole.weights.tensors.tensor(name),
                model.weights.tensors.tensor(name),
            );
            assert_eq!(a.unwrap().data, b.unwrap().data, "{name}");
        }
    }
}

#[test]
fn a_split_model_with_a_file_missing_or_misplaced_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let paths = split(folder.path());
    std::fs::copy(&paths[1], &paths[2]).unwrap();
    let error = open(&paths[0]).err().unwrap();
    assert_eq!(error.path(), paths[2]);
    assert_eq!(
        error.problems(),
        ["says that it is file 1 of 3 (counted from 0), expected 2 of 3; the files are mixed up"]
    );
    std::fs::remove_file(&paths[2]).unwrap();
    let error = open(&paths[0]).err().unwrap();
    assert_eq!(error.path(), paths[2]);
    assert!(error.problems()[0].starts_with("cannot be read: "));
    let renamed = folder.path().join("first.gguf");
    std::fs::rename(&paths[0], &renamed).unwrap();
    let error = open(&renamed).err().unwrap();
    assert!(
        error.problems()[0].starts_with("is one of 3 files of a model, so its name must end in"),
        "{error}"
    );
}
