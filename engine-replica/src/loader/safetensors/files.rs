//! Which files hold a folder's weights.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::header::Header;
use crate::loader::error::LoadError;
use crate::loader::fingerprint::Fingerprint;
use crate::loader::folder::Folder;
use crate::loader::table::Tensors;

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Files that an index may name; the largest published models have under 200.
const FILES_MAX: usize = 1024;

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Maps the weight files of a folder and places their tensors.
pub(super) fn open(
    folder: Folder<'_>,
    fingerprint: &mut Fingerprint,
    problems: &mut Vec<String>,
) -> Result<Tensors, LoadError> {
    let weight_map = read_index(folder)?;
    let names: BTreeSet<&str> = weight_map.values().map(String::as_str).collect();
    let mut files = Vec::new();
    let mut headers = BTreeMap::new();
    for (index, name) in names.iter().enumerate() {
        let file = folder.weights(name)?;
        let header = Header::parse(file.bytes())
            .map_err(|problem| LoadError::one(&folder.path().join(name), problem))?;
        fingerprint.add(
            file.bytes().get(..header.data_start).unwrap_or_default(),
            file.bytes().len(),
        );
        files.push(file);
        headers.insert(*name, (index, header));
    }
    let mut tensors = Tensors::new(files);
    for (file, header) in headers.values() {
        header.place_all(*file, &mut tensors, problems);
    }
    for (tensor, name) in weight_map.iter().filter(|(tensor, _)| !tensor.is_empty()) {
        if headers
            .get(name.as_str())
            .is_some_and(|(_, header)| !header.has(tensor))
        {
            problems.push(format!(
                "{INDEX} says that tensor `{tensor}` is in {name}, where it is not"
            ));
        }
    }
    Ok(tensors)
}

/// Tensor name to file name; a folder with one file gives that file under the empty name.
fn read_index(folder: Folder<'_>) -> Result<BTreeMap<String, String>, LoadError> {
    if folder.has(SINGLE) {
        return Ok(BTreeMap::from([(String::new(), SINGLE.to_owned())]));
    }
    let path = folder.path().join(INDEX);
    let Some(text) = folder.text(INDEX)? else {
        return Err(LoadError::one(
            folder.path(),
            format!(
                "holds neither {SINGLE} nor {INDEX}; this build reads safetensors and GGUF, no other weights"
            ),
        ));
    };
    let index: Index = serde_json::from_str(&text)
        .map_err(|error| LoadError::one(&path, format!("is damaged: {error}")))?;
    let names: BTreeSet<&str> = index.weight_map.values().map(String::as_str).collect();
    if names.is_empty() || names.len() > FILES_MAX {
        return Err(LoadError::one(
            &path,
            format!("names {} files, expected 1 to {FILES_MAX}", names.len()),
        ));
    }
    // An index must not reach outside its folder.
    let foreign = names.iter().find(|name| {
        Path::new(name)
            .file_name()
            .is_none_or(|plain| plain != **name)
    });
    if let Some(name) = foreign {
        return Err(LoadError::one(
            &path,
            format!("names the file `{name}`, expected a name without folders"),
        ));
    }
    Ok(index.weight_map)
}
