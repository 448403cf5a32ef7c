//! NVIDIA's own compiler takes the kernels for every architecture, and keeps every value in a register.
//!
//! `PINION_TEST_NVRTC` names its library; `tests/cuda/nvrtc.sh` fetches it.

use std::path::Path;

use expect_test::expect_file;

use super::super::nvrtc::Nvrtc;
use super::super::{device, image};

/// Ampere, Hopper and Blackwell.
const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90a", "sm_100"];
/// The driver that the code is for.
const DRIVER: i32 = 13;

/// NVIDIA's compiler, or a line that says that there is none here.
fn nvrtc() -> Option<Nvrtc> {
    // A script that could not fetch it leaves the variable empty.
    let named = std::env::var_os("PINION_TEST_NVRTC").filter(|path| !path.is_empty());
    let Some(path) = named else {
        println!("skipped: PINION_TEST_NVRTC names no libnvrtc; tests/cuda/nvrtc.sh fetches one");
        return None;
    };
    Some(Nvrtc::load(Path::new(&path), DRIVER).unwrap())
}

/// The number before `unit` in a line.
fn number_before(line: &str, unit: &str) -> Option<u32> {
    let before = line.split(unit).next().filter(|b| b.len() < line.len())?;
    before.trim_end().rsplit([' ', ',']).next()?.parse().ok()
}

/// A line for each kernel, in the order of their names: registers of a thread and bytes of shared memory of a block.
fn table(architecture: &str, log: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut kernel = String::new();
    for line in log.lines() {
        if let Some(rest) = line.split("entry function '").nth(1) {
            kernel = rest.split('\'').next().unwrap_or_default().to_owned();
        }
        if line.contains("spill stores") {
            assert!(line.contains(" 0 bytes spill stores"), "{kernel}: {line}");
            assert!(line.contains(" 0 bytes stack frame"), "{kernel}: {line}");
        }
        if let Some(registers) = number_before(line, " registers") {
            let shared = number_before(line, " bytes smem").unwrap_or(0);
            lines.push(format!(
                "{architecture:7} {kernel:12} {registers:3} {shared:5}\n"
            ));
        }
    }
    lines.sort();
    assert_eq!(lines.len(), device::KERNELS.len(), "{log}");
    lines
}

#[test]
fn kernels_compile_for_every_architecture_without_spills() {
    let Some(nvrtc) = nvrtc() else { return };
    let mut text = format!(
        "NVRTC {}.{}: architecture, kernel, registers of a thread, bytes of shared memory of a block\n",
        nvrtc.version.0, nvrtc.version.1
    );
    for architecture in ARCHITECTURES {
        let compiled = image::compile(&nvrtc, architecture, &["--ptxas-options=-v"]).unwrap();
        assert!(compiled.cubin.starts_with(b"\x7fELF"));
        text.extend(table(architecture, &compiled.log));
    }
    expect_file!["../kernels/registers.txt"].assert_eq(&text);
}

#[test]
fn a_mistake_in_a_kernel_is_told_with_its_line() {
    let Some(nvrtc) = nvrtc() else { return };
    let source = "#line 7 \"rows.cu\"\n__global__ void k(int *p) { p[0] = nowhere; }";
    let log = nvrtc.compile(source, &[]).unwrap_err();
    assert!(
        log.contains("rows.cu(7)") && log.contains("nowhere"),
        "{log}"
    );
}
