//! What the program says of the GPU when it starts. It never panics, whatever libraries it finds.

use std::path::Path;
use std::process::{Command, Output};

use cuda_sim::{Run, Variant};

/// The program with its built-in model and a short measurement, on the simulated GPU.
fn program(device: &str, cache: &Path) -> Command {
    let run = Run::random(Variant::Plain, 1);
    let mut command = run
        .command(Path::new(env!("CARGO_BIN_EXE_engine-replica")))
        .unwrap();
    command.args(["bench", "--device", device]);
    command.args(["--prompt-tokens", "20", "--streams", "1"]);
    command.args(["--decode-tokens", "2", "--runs", "1", "--kv-tokens", "256"]);
    command.env("XDG_CACHE_HOME", cache).env("RUST_LOG", "info");
    for variable in ["CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "VIRTUAL_ENV"] {
        command.env_remove(variable);
    }
    command
}

/// What the program wrote for people, after a look at how it ended.
#[track_caller]
fn said(output: &Output, success: bool) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("panicked"), "{text}");
    assert_eq!(output.status.code(), Some(i32::from(!success)), "{text}");
    text
}

fn skipped() -> bool {
    if let Some(why) = cuda_sim::missing() {
        println!("skipped: {why}");
        return true;
    }
    false
}

#[test]
fn kernels_are_compiled_once_and_again_where_the_file_is_damaged() {
    if skipped() {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let start = || said(&program("cuda", cache.path()).output().unwrap(), true);
    let first = start();
    assert!(
        first.contains("compiling the CUDA kernels for sm_90 with NVRTC 13.0"),
        "{first}"
    );
    assert!(
        first.contains("device     cuda:0, simulated GPU (as asked for)"),
        "{first}"
    );
    assert!(!start().contains("compil"));
    let folder = cache.path().join("pinion/kernels");
    let files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1);
    std::fs::write(&files[0], "no machine code at all").unwrap();
    assert!(start().contains("cuda-sim: compiled"));
    assert!(!start().contains("compil"));
}

#[test]
fn auto_takes_a_gpu_and_says_why_it_does_not() {
    if skipped() {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let check = |change: &[(&str, &str)], expect: &str| {
        let mut command = program("auto", cache.path());
        command.envs(change.iter().copied());
        let text = said(&command.output().unwrap(), true);
        assert!(text.contains(expect), "{change:?}: {text}");
    };
    check(
        &[],
        "device     cuda:0, simulated GPU (auto: a GPU is here)",
    );
    check(
        &[("CUDA_SIM_DEVICES", "0")],
        "(auto: the NVIDIA driver finds no GPU)",
    );
    let lacking = cuda_sim::lacking();
    check(
        &[("LD_LIBRARY_PATH", lacking.to_str().unwrap())],
        "(auto: the NVIDIA driver lacks `cuCtxGetCurrent`; install one for CUDA 12 or later)",
    );
}

#[test]
fn a_gpu_that_was_asked_for_and_cannot_be_used_is_an_error() {
    if skipped() {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let check = |device: &str, change: &[(&str, &str)], expect: &str| {
        let mut command = program(device, cache.path());
        command.envs(change.iter().copied());
        let text = said(&command.output().unwrap(), false);
        let expect = format!("engine-replica: --device {expect}");
        assert!(text.contains(&expect), "{change:?}: {text}");
        assert!(text.contains("`--device cpu` and `--device auto` run without a GPU"));
    };
    check(
        "cuda",
        &[("CUDA_SIM_DEVICES", "0")],
        "cuda:0: the NVIDIA driver finds no GPU",
    );
    check(
        "cuda:2",
        &[("CUDA_SIM_DEVICES", "2")],
        "cuda:2: there is no GPU 2; the NVIDIA driver finds 2, numbered from 0",
    );
    check(
        "cuda",
        &[("CUDA_SIM_DRIVER", "11080")],
        "cuda:0: the NVIDIA driver is made for CUDA 11.8; install one for CUDA 12 or later",
    );
    check(
        "cuda",
        &[("CUDA_SIM_NVRTC_ERROR", "kernels.cu(1): error: nonsense")],
        "cuda:0: NVRTC cannot compile the kernels for sm_90: kernels.cu(1): error: nonsense",
    );
    let lacking = cuda_sim::lacking();
    check(
        "cuda",
        &[("LD_LIBRARY_PATH", lacking.to_str().unwrap())],
        "cuda:0: the NVIDIA driver lacks `cuCtxGetCurrent`",
    );
}

#[test]
fn a_machine_without_the_libraries_is_told_which() {
    let cache = tempfile::tempdir().unwrap();
    // The machine's own libraries stay where they are; on one that has them, the program simply starts.
    let mut command = program("cuda", cache.path());
    let output = command.env("LD_LIBRARY_PATH", "").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("panicked"), "{text}");
    assert!(
        output.status.success() || text.contains("--device cuda:0: "),
        "{text}"
    );
    if skipped() {
        return;
    }
    // A driver, and no NVRTC beside it.
    let only = cache.path().join("only-the-driver");
    std::fs::create_dir(&only).unwrap();
    let driver = cuda_sim::folder(Variant::Plain).join("libcuda.so");
    std::os::unix::fs::symlink(driver, only.join("libcuda.so")).unwrap();
    let mut command = program("cuda", cache.path());
    let output = command.env("LD_LIBRARY_PATH", &only).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("panicked"), "{text}");
    let told = text.contains("no libnvrtc.so.13 or libnvrtc.so.12 or libnvrtc.so in the system");
    assert!(output.status.success() || told, "{text}");
}
