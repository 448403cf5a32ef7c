//! Where the fixtures lie and how they are read.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/golden")
        .join(name)
}

/// The built-in model's folder, which transformers loads as it is.
pub(crate) fn abacus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/abacus")
}

pub(crate) fn read(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(path(name)).unwrap()).unwrap()
}

/// Takes a part of a fixture as a type.
pub(crate) fn part<T: DeserializeOwned>(value: &Value, key: &str) -> T {
    serde_json::from_value(value[key].clone()).unwrap()
}

/// SmolLM2's file, or a printed reason why the test says nothing.
pub(crate) fn smollm2() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .filter(|cache| !cache.is_empty())
        .map(PathBuf::from);
    let cache =
        cache.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))?;
    let path = cache.join("pinion/models/SmolLM2-135M-Instruct.Q4_1.gguf");
    if !path.is_file() {
        println!(
            "skipped: {} is not there; deploy/scripts/fetch-smollm2.sh fetches it",
            path.display()
        );
        return None;
    }
    Some(path)
}
