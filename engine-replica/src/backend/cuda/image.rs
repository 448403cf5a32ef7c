//! The kernels' source, and the machine code that NVRTC makes of it, kept on disk.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::error::CudaError;
use super::nvrtc::{Compiled, Nvrtc};

/// All kernels as one source.
pub(super) const SOURCE: &str = concat!(
    include_str!("kernels/prelude.cuh"),
    "\n#line 1 \"numeric.cu\"\n",
    include_str!("kernels/numeric.cu"),
    "\n#line 1 \"rows.cu\"\n",
    include_str!("kernels/rows.cu"),
    "\n#line 1 \"matmul.cu\"\n",
    include_str!("kernels/matmul.cu"),
    "\n#line 1 \"attention.cu\"\n",
    include_str!("kernels/attention.cu"),
);

/// Options besides the architecture. Subnormal numbers stay, divisions and roots round as IEEE says; the kernels name each fused
/// multiply-add, so the compiler makes none.
const OPTIONS: [&str; 5] = [
    "--std=c++17",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--fmad=false",
];

/// The kernels for `architecture` (as `sm_90`), with options besides the usual.
pub(super) fn compile(
    nvrtc: &Nvrtc,
    architecture: &str,
    more: &[&str],
) -> Result<Compiled, CudaError> {
    let mut options = options(architecture);
    options.extend(more.iter().map(|option| (*option).to_owned()));
    nvrtc
        .compile(SOURCE, &options)
        .map_err(|log| CudaError::Compile {
            architecture: architecture.to_owned(),
            log,
        })
}

fn options(architecture: &str) -> Vec<String> {
    let mut options = vec![format!("--gpu-architecture={architecture}")];
    options.extend(OPTIONS.map(str::to_owned));
    options
}

/// The kernels for `architecture`, from the cache where they are there. `fresh` compiles them whatever is there.
pub(super) fn image(nvrtc: &Nvrtc, architecture: &str, fresh: bool) -> Result<Vec<u8>, CudaError> {
    let path = cache().map(|folder| folder.join(file_name(nvrtc.version, architecture)));
    if let Some(path) = path.as_deref().filter(|_| !fresh)
        && let Ok(image) = std::fs::read(path)
    {
        return Ok(image);
    }
    let (major, minor) = nvrtc.version;
    tracing::info!(
        "compiling the CUDA kernels for {architecture} with NVRTC {major}.{minor}; takes some seconds, once"
    );
    let Compiled { cubin, log } = compile(nvrtc, architecture, &[])?;
    if !log.trim().is_empty() {
        tracing::debug!("NVRTC: {}", log.trim());
    }
    if let Some(path) = path
        && let Err(error) = keep(&path, &cubin)
    {
        tracing::warn!(
            "the compiled kernels are not kept: {}: {error}",
            path.display()
        );
    }
    Ok(cubin)
}

/// The user's cache folder for compiled kernels.
fn cache() -> Option<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))?;
    Some(cache.join("pinion").join("kernels"))
}

/// A name that tells apart all that can change the machine code.
fn file_name(version: (i32, i32), architecture: &str) -> String {
    let mut hash = Sha256::new();
    for part in [
        SOURCE,
        &format!("{version:?}"),
        &options(architecture).join(" "),
    ] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{architecture}-{hex}.cubin")
}

/// Writes a whole file or none: others may read it at the same time.
fn keep(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    std::fs::write(&partial, bytes)?;
    std::fs::rename(&partial, path)
}
