//! Builds the stand-ins for libcuda and libnvrtc, with the kernels in them: plain, and for each sanitizer. Without a C++
//! compiler that can do so it leaves the folder's name empty, and tests say that they are skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder and compiler flags of each variant.
const VARIANTS: [(&str, &[&str]); 3] = [
    ("plain", &[]),
    (
        "address",
        &["-fsanitize=address", "-fno-omit-frame-pointer"],
    ),
    ("thread", &["-fsanitize=thread"]),
];

/// `-ffp-contract=off`: each operation of a kernel rounds as it says. Unrolled loops that become a memset or memcpy would be
/// hidden from the thread sanitizer.
const FLAGS: [&str; 9] = [
    "-std=c++17",
    "-O1",
    "-g1",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-Wno-unknown-pragmas",
    "-ffp-contract=off",
    "-fno-tree-loop-distribute-patterns",
];

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let kernels = root.join("../src/backend/cuda/kernels");
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-changed={}", kernels.display());
    let (folder, missing) = match build(&root.join("shim"), &kernels, &out) {
        Ok(()) => (out.display().to_string(), String::new()),
        Err(why) => {
            println!("cargo:warning=no simulated GPU: {why}");
            (String::new(), why)
        }
    };
    println!("cargo:rustc-env=CUDA_SIM_FOLDER={folder}");
    println!("cargo:rustc-env=CUDA_SIM_MISSING={missing}");
}

fn build(shim: &Path, kernels: &Path, out: &Path) -> Result<(), String> {
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64")
        || std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux")
    {
        return Err("it switches between threads by instructions of x86-64 Linux".to_owned());
    }
    let compiler = cc::Build::new()
        .cpp(true)
        .cargo_metadata(false)
        .try_get_compiler()
        .map_err(|_| "there is no C++ compiler".to_owned())?;
    let run = |arguments: &mut dyn FnMut(&mut Command)| {
        let mut command = Command::new(compiler.path());
        arguments(&mut command);
        match command.output() {
            Ok(done) if done.status.success() => Ok(()),
            Ok(done) => Err(first_line(&done.stderr)),
            Err(error) => Err(format!("{}: {error}", compiler.path().display())),
        }
    };
    let object = |source: &str, flags: &[&str], to: &Path| {
        run(&mut |command| {
            command.args(FLAGS).args(flags).arg("-I").arg(shim);
            command.arg("-I").arg(kernels).arg("-c");
            command.arg(shim.join(source)).arg("-o").arg(to);
        })
    };
    let (sched, driver) = (out.join("scheduler.o"), out.join("driver.o"));
    object("scheduler.cpp", &[], &sched)?;
    object("driver.cpp", &[], &driver)?;
    let library = |folder: &str, name: &str, flags: &[&str], from: &[&Path]| {
        run(&mut |command| {
            command
                .args(flags)
                .arg("-shared")
                .arg(format!("-Wl,-soname,{name}"));
            command
                .arg("-o")
                .arg(out.join(folder).join(name))
                .args(from);
        })
    };
    for (variant, flags) in VARIANTS {
        let folder = out.join(variant);
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let (kernels, nvrtc) = (folder.join("kernels.o"), folder.join("nvrtc.o"));
        object("kernels_host.cpp", flags, &kernels)?;
        object("nvrtc.cpp", &[], &nvrtc)?;
        library(variant, "libcuda.so", flags, &[&kernels, &sched, &driver])?;
        library(variant, "libnvrtc.so.13", &[], &[&nvrtc])?;
    }
    let lacking = out.join("lacking");
    std::fs::create_dir_all(&lacking).map_err(|e| format!("{}: {e}", lacking.display()))?;
    let made = lacking.join("lacking.o");
    object("lacking.cpp", &[], &made)?;
    library("lacking", "libcuda.so", &[], &[&made])
}

fn first_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let error = text.lines().find(|line| line.contains("error"));
    error
        .or(text.lines().next())
        .unwrap_or("the compiler failed")
        .to_owned()
}
