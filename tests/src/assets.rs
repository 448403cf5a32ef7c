//! What tests need besides the binaries: models, and the official client.

use std::path::{Path, PathBuf};

/// The GGUF file of SmolLM2-135M-Instruct that `make test` has fetched.
///
/// # Panics
/// When it is not there, with what to do: an end-to-end test without a model would prove nothing.
pub fn smollm2() -> PathBuf {
    let path = std::env::var_os("PINION_TEST_MODEL").map_or_else(
        || cache().join("models/SmolLM2-135M-Instruct.Q4_1.gguf"),
        PathBuf::from,
    );
    assert!(
        path.is_file(),
        "no model at {}; run `make test`, or `deploy/scripts/fetch-smollm2.sh` once",
        path.display()
    );
    path
}

/// What `--model` says for the model inside the replica: it needs no file, and answers in a tenth of a second.
pub fn builtin() -> PathBuf {
    PathBuf::from("builtin")
}

/// A Python that has the official `openai` client.
///
/// # Panics
/// When it is not there, with what to do.
pub fn python() -> PathBuf {
    let path = std::env::var_os("PINION_TEST_PYTHON")
        .map_or_else(|| cache().join("venv-clients/bin/python"), PathBuf::from);
    assert!(
        path.exists(),
        "no Python with the `openai` package at {}; run `make test`, or `tests/clients/setup.sh` once",
        path.display()
    );
    path
}

/// A binary of this workspace, built with the profile of the running test.
///
/// # Panics
/// When it was not built.
pub fn binary(name: &str) -> PathBuf {
    let exe = std::env::current_exe().expect("a running test knows its own path");
    let dir = exe
        .ancestors()
        .find(|dir| dir.file_name().is_some_and(|n| n == "deps"))
        .and_then(Path::parent)
        .expect("tests run from <target>/<profile>/deps");
    let path = dir.join(name);
    assert!(
        path.is_file(),
        "{} is not built; run `cargo build --bins` with the same profile first (make test does)",
        path.display()
    );
    path
}

/// A folder of this package's sources.
pub fn source(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache"),
        PathBuf::from,
    );
    base.join("pinion")
}
