//! Models that are split over several GGUF files: `name-00001-of-00003.gguf` and so on.

use std::path::{Path, PathBuf};

use super::header::Header;

/// Files of one model; the largest published splits have under a hundred.
const FILES_MAX: usize = 512;

/// The stem of a path without `-00001-of-00003`, with the two numbers when they are there.
pub(super) fn stem(path: &Path) -> (String, Option<(usize, usize)>) {
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let numbers = stem.rsplit_once("-of-").and_then(|(rest, count)| {
        let (name, number) = rest.rsplit_once('-')?;
        let five_digits = |text: &str| text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit());
        if !five_digits(number) || !five_digits(count) {
            return None;
        }
        Some((name.to_owned(), (number.parse().ok()?, count.parse().ok()?)))
    });
    match numbers {
        Some((name, numbers)) => (name, Some(numbers)),
        None => (stem, None),
    }
}

/// The files of the model that `path` is one of, in order; `[path]` for a model in one file.
pub(super) fn files(path: &Path, header: &Header) -> Result<Vec<PathBuf>, String> {
    let count = header.metadata.size("split.count")?.unwrap_or(0);
    if count <= 1 {
        return Ok(vec![path.to_owned()]);
    }
    if count > FILES_MAX {
        return Err(format!(
            "`split.count` is {count}, expected at most {FILES_MAX}"
        ));
    }
    let (name, numbers) = stem(path);
    match numbers {
        Some((_, of)) if of == count => {}
        _ => {
            return Err(format!(
                "is one of {count} files of a model, so its name must end in `-00001-of-{count:05}.gguf` or the like \
                 for the others to be found"
            ));
        }
    }
    Ok((1..=count)
        .map(|n| path.with_file_name(format!("{name}-{n:05}-of-{count:05}.gguf")))
        .collect())
}

/// Checks that a file is the one that its name says. `index` counts from 0.
pub(super) fn check(header: &Header, index: usize, count: usize) -> Result<(), String> {
    if count == 1 {
        return Ok(());
    }
    let (no, of) = (
        header.metadata.size("split.no")?,
        header.metadata.size("split.count")?,
    );
    if (no, of) == (Some(index), Some(count)) {
        return Ok(());
    }
    let shown = |n: Option<usize>| n.map_or_else(|| "nothing".to_owned(), |n| n.to_string());
    Err(format!(
        "says that it is file {} of {} (counted from 0), expected {index} of {count}; the files are mixed up",
        shown(no),
        shown(of)
    ))
}
