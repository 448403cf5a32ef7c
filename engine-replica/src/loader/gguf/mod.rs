//! GGUF versions 2 and 3, in one file or split, with the vocabulary and chat template that travel inside.

mod config;
mod header;
mod names;
mod read;
mod split;
mod types;
mod value;
mod vocab;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod writer;

use std::path::Path;

use self::header::Header;
use self::value::Metadata;
use super::error::LoadError;
use super::fingerprint::Fingerprint;
use super::map::ModelFile;
use super::table::{Placement, Tensors};
use super::{Checkpoint, GenerationDefaults, Weights, shape};
use crate::model::config::EXPERTS_MAX;

pub(super) fn open(path: &Path) -> Result<Checkpoint, LoadError> {
    let (weights, metadata) = open_parts(path)?;
    let mut problems = Vec::new();
    let chat = vocab::read(&metadata, weights.config.vocab, &mut problems);
    let generation = generation_defaults(&metadata, &mut problems);
    match chat {
        Some((tokenizer, template, eos)) if problems.is_empty() => Ok(Checkpoint {
            name: split::stem(path).0,
            weights,
            tokenizer,
            template,
            eos,
            generation,
        }),
        _ => Err(LoadError::new(path, problems)),
    }
}

pub(super) fn open_weights(path: &Path) -> Result<Weights, LoadError> {
    open_parts(path).map(|(weights, _)| weights)
}

fn open_parts(path: &Path) -> Result<(Weights, Metadata), LoadError> {
    let Files { files, headers } = Files::open(path)?;
    let mut problems = Vec::new();
    let mut fingerprint = Fingerprint::new();
    for (file, header) in files.iter().zip(&headers) {
        let head = file
            .bytes()
            .get(..header.data_start)
            .unwrap_or(file.bytes());
        fingerprint.add(head, file.bytes().len());
    }
    let mut tensors = Tensors::new(files);
    for (file, header) in headers.iter().enumerate() {
        place_tensors(&mut tensors, file, header, &mut problems);
    }
    let metadata = headers
        .into_iter()
        .next()
        .map(|first| first.metadata)
        .unwrap_or_default();
    let config = config::read(&metadata, &tensors, &mut problems);
    if let Some(config) = config.as_ref().filter(|_| problems.is_empty()) {
        shape::check_config(config, &mut problems);
        if problems.is_empty() {
            shape::check_tensors(config, &tensors, &mut problems);
        }
    }
    match config {
        Some(config) if problems.is_empty() => Ok((
            Weights {
                config,
                tensors,
                fingerprint: fingerprint.finish(),
            },
            metadata,
        )),
        _ => Err(LoadError::new(path, problems)),
    }
}

/// The files of one model with their headers; the same length, in order.
struct Files {
    files: Vec<ModelFile>,
    headers: Vec<Header>,
}

impl Files {
    fn open(path: &Path) -> Result<Self, LoadError> {
        let first = ModelFile::open(path)?;
        let header =
            header::parse(first.bytes()).map_err(|problem| LoadError::one(path, problem))?;
        let paths = split::files(path, &header).map_err(|problem| LoadError::one(path, problem))?;
        if paths.len() == 1 {
            return Ok(Self {
                files: vec![first],
                headers: vec![header],
            });
        }
        let (mut files, mut headers) = (Vec::new(), Vec::new());
        for (index, path) in paths.iter().enumerate() {
            let file = ModelFile::open(path)?;
            let header = header::parse(file.bytes())
                .and_then(|header| split::check(&header, index, paths.len()).map(|()| header))
                .map_err(|problem| LoadError::one(path, problem))?;
            files.push(file);
            headers.push(header);
        }
        Ok(Self { files, headers })
    }
}

fn place_tensors(tensors: &mut Tensors, file: usize, header: &Header, problems: &mut Vec<String>) {
    // A quantisation that cannot be read fills the whole file: one line for each type says it better than hundreds.
    let mut unreadable: Vec<(String, &str, usize)> = Vec::new();
    for info in &header.tensors {
        let dtype = match types::dtype(info.kind) {
            Ok(dtype) => dtype,
            Err(kind) => {
                match unreadable.iter_mut().find(|(known, ..)| *known == kind) {
                    Some((_, _, count)) => *count += 1,
                    None => unreadable.push((kind, &info.name, 1)),
                }
                continue;
            }
        };
        let dims: Vec<u64> = info.dims.iter().rev().copied().collect();
        let start = (header.data_start as u64).saturating_add(info.offset);
        let placement = Placement {
            stored_name: &info.name,
            file,
            dtype,
            dims: &dims,
            start,
        };
        let placed = match (names::stacked_experts(&info.name), dims.as_slice()) {
            (Some(name), &[experts, rows, cols]) => {
                place_experts(tensors, &placement, (experts, rows, cols), &name)
            }
            _ => tensors.place(&names::hugging_face(&info.name), &placement),
        };
        if let Err(problem) = placed {
            problems.push(problem);
        }
    }
    for (kind, name, count) in unreadable {
        let more = if count > 1 {
            format!(" (with {} more)", count - 1)
        } else {
            String::new()
        };
        problems.push(format!(
            "tensor `{name}`{more} is {kind}, which this build does not read; readable: {}",
            types::READABLE
        ));
    }
}

/// Takes the experts of a layer in, each as a tensor of its own.
fn place_experts(
    tensors: &mut Tensors,
    stack: &Placement<'_>,
    (experts, rows, cols): (u64, u64, u64),
    name: &dyn Fn(u64) -> String,
) -> Result<(), String> {
    let stored = stack.stored_name;
    if experts > EXPERTS_MAX as u64 {
        return Err(format!(
            "tensor `{stored}` holds {experts} experts, expected at most {EXPERTS_MAX}"
        ));
    }
    let elements = rows
        .checked_mul(cols)
        .and_then(|n| usize::try_from(n).ok())
        .filter(|&n| n <= usize::MAX / 4);
    let Some(elements) = elements else {
        return Err(format!("tensor `{stored}` is too large: {:?}", stack.dims));
    };
    let bytes = stack.dtype.bytes(elements) as u64;
    for expert in 0..experts {
        let placement = Placement {
            dims: &[rows, cols],
            start: stack.start.saturating_add(expert.saturating_mul(bytes)),
            ..*stack
        };
        tensors.place(&name(expert), &placement)?;
    }
    Ok(())
}

fn generation_defaults(metadata: &Metadata, problems: &mut Vec<String>) -> GenerationDefaults {
    let mut float = |key: &str| {
        metadata.float(key).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        })
    };
    let temperature = float("general.sampling.temp");
    let top_p = float("general.sampling.top_p");
    let min_p = float("general.sampling.min_p");
    let top_k = metadata
        .token("general.sampling.top_k")
        .unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
    GenerationDefaults {
        temperature: temperature.map(|x| x as f32),
        top_p: top_p.map(|x| x as f32),
        min_p: min_p.map(|x| x as f32),
        top_k,
        ..GenerationDefaults::default()
    }
}
