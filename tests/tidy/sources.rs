//! Which files there are, and what may stand in a source file.

use std::path::{Path, PathBuf};

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the workspace")
        .to_owned()
}

/// A file of the repository: its path from the root, and its text.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// The part before the unit tests at its end, which may do what shipped code may not.
    pub(crate) fn shipped(&self) -> &str {
        if self.path.ends_with("tests.rs")
            || self.path.contains("/tests/")
            || self.path.starts_with("tests/")
        {
            return "";
        }
        self.text.split("#[cfg(test)]").next().unwrap_or("")
    }
}

/// Files below `folder` whose names end with one of `endings`, build output and dot folders left out.
pub(crate) fn files(folder: &str, endings: &[&str]) -> Vec<File> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        {
            let path = entry.expect("a readable folder").path();
            let name = path
                .file_name()
                .and_then(|n| n.to_str())
                .unwrap_or("")
                .to_owned();
            if path.is_dir() {
                if name != "target"
                    && !name.starts_with('.')
                    && name != "node_modules"
                    && name != "__pycache__"
                {
                    folders.push(path);
                }
            } else if endings.iter().any(|e| name.ends_with(e))
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                let path = path
                    .strip_prefix(root())
                    .expect("below the root")
                    .display()
                    .to_string();
                found.push(File { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Fails with all offenders at once.
#[track_caller]
pub(crate) fn none(what: &str, offenders: &[String]) {
    assert!(
        offenders.is_empty(),
        "{what}:\n  {}",
        offenders.join("\n  ")
    );
}

/// Lines of shipped code in `files` that hold one of `words`.
pub(crate) fn lines_with(files: &[File], words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        for (i, line) in file.shipped().lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if let Some(word) = words.iter().find(|w| code.contains(**w)) {
                found.push(format!("{}:{}: `{word}`", file.path, i + 1));
            }
        }
    }
    found
}

const PURE: &[&str] = &[
    "routing-policies/src",
    "gateway/wire/src",
    "engine-replica/core/src",
];

#[test]
fn a1_pure_crates_use_no_io_time_randomness_thread_or_async() {
    let words = [
        "std::fs",
        "std::net",
        "std::io",
        "std::process",
        "std::env",
        "std::thread",
        "Instant",
        "SystemTime",
        "RandomState",
        "async ",
        ".await",
        "println!",
        "eprintln!",
    ];
    for folder in PURE {
        none(
            "a pure crate reaches outside",
            &lines_with(&files(folder, &[".rs"]), &words),
        );
    }
}

#[test]
fn a4_unsafe_stands_only_where_it_must() {
    let homes = [
        "engine-replica/src/backend/cpu/",
        "engine-replica/src/backend/cuda/",
        "engine-replica/src/loader/map.rs",
    ];
    let mut offenders = Vec::new();
    for folder in [
        "routing-policies",
        "gateway",
        "engine-replica",
        "tests/src",
        "deploy",
    ] {
        for file in files(folder, &[".rs"]) {
            let excused = homes.iter().any(|h| file.path.starts_with(h));
            let uses = file.shipped().lines().any(|l| {
                let code = l.split("//").next().unwrap_or("");
                code.contains("unsafe {")
                    || code.contains("unsafe fn")
                    || code.contains("unsafe impl")
            });
            if uses && !excused {
                offenders.push(file.path);
            }
        }
    }
    none(
        "unsafe outside the kernels and the map of a model file",
        &offenders,
    );
    for lib in [
        "routing-policies/src/lib.rs",
        "gateway/src/lib.rs",
        "gateway/wire/src/lib.rs",
        "engine-replica/core/src/lib.rs",
        "tests/src/lib.rs",
    ] {
        let text = std::fs::read_to_string(root().join(lib)).expect(lib);
        assert!(
            text.contains("#![forbid(unsafe_code)]"),
            "{lib} forbids unsafe code"
        );
    }
}

#[test]
fn a5_error_bodies_are_written_in_one_file_per_shell() {
    let homes = [
        "gateway/src/layers/rescue.rs",
        "engine-replica/src/api/rescue.rs",
        // Not a response but the last event of one whose head is long gone.
        "gateway/src/chat/events.rs",
    ];
    let mut offenders = Vec::new();
    for folder in ["gateway/src", "engine-replica/src"] {
        let others: Vec<File> = files(folder, &[".rs"])
            .into_iter()
            .filter(|file| !homes.contains(&file.path.as_str()))
            .collect();
        offenders.extend(lines_with(&others, &["ErrorBody"]));
    }
    none("an error body outside rescue.rs", &offenders);
}

#[test]
fn a7_no_queue_is_unbounded() {
    let mut offenders = Vec::new();
    for folder in [
        "routing-policies/src",
        "gateway/src",
        "gateway/wire/src",
        "engine-replica/src",
        "engine-replica/core/src",
    ] {
        offenders.extend(lines_with(
            &files(folder, &[".rs"]),
            &["unbounded", "mpsc::channel()"],
        ));
    }
    none("a queue without a bound", &offenders);
}

#[test]
fn nothing_is_left_unfinished_or_switched_off() {
    let words = [
        "todo!(",
        "unimplemented!(",
        concat!("#[", "ignore"),
        concat!("should", "_panic"),
        "dead_code",
    ];
    let mut offenders = Vec::new();
    for folder in ["routing-policies", "gateway", "engine-replica", "tests"] {
        for file in files(folder, &[".rs"]) {
            if file.path.starts_with("tests/tidy/") {
                continue;
            }
            for (i, line) in file.text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or("");
                let marks = ["TODO", "FIXME"];
                if words.iter().any(|w| code.contains(w)) || marks.iter().any(|m| line.contains(m))
                {
                    offenders.push(format!("{}:{}: {}", file.path, i + 1, line.trim()));
                }
            }
        }
    }
    none("unfinished or switched off", &offenders);
}

#[test]
fn files_are_small() {
    const LINES_MAX: usize = 400;
    // Rows of tests may go on a little longer: splitting a table of cases helps nobody.
    const TEST_LINES_MAX: usize = 500;
    const MEDIAN_MAX: usize = 200;
    let mut lengths = Vec::new();
    let mut offenders = Vec::new();
    for folder in ["routing-policies", "gateway", "engine-replica", "tests"] {
        for file in files(folder, &[".rs"]) {
            let lines = file.text.lines().count();
            lengths.push(lines);
            let is_test = file.shipped().is_empty();
            if lines > if is_test { TEST_LINES_MAX } else { LINES_MAX } {
                offenders.push(format!("{}: {lines} lines", file.path));
            }
        }
    }
    none("is each of these one thing? split it", &offenders);
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!(median < MEDIAN_MAX, "the median file has {median} lines");
}
