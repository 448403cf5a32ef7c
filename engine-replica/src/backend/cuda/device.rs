//! One GPU with its kernels loaded: memory, copies and launches, all on one stream, so that each sees the results of those before.

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr, DeviceRepr,
    LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;

use super::error::{CudaError, name_of};
use super::nvrtc::Nvrtc;
use super::{driver, image};
use crate::backend::BackendError;

/// Every kernel by its name in the source.
pub(super) const KERNELS: [&str; 20] = [
    "rms_norm",
    "qk_norm",
    "add",
    "silu_mul",
    "rope",
    "gather",
    "kv_write",
    "attention",
    "embed_f32",
    "embed_f16",
    "embed_bf16",
    "embed_q8_0",
    "embed_q4_0",
    "embed_q4_1",
    "matmul_f32",
    "matmul_f16",
    "matmul_bf16",
    "matmul_q8_0",
    "matmul_q4_0",
    "matmul_q4_1",
];

/// One argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    /// An address on the GPU.
    At(u64),
    U32(u32),
    U64(u64),
    F32(f32),
}

impl From<usize> for Arg {
    /// Widths and counts of heads and rows, which the model's checks keep far below 2³².
    fn from(value: usize) -> Self {
        Arg::U32(value as u32)
    }
}

/// How many threads run a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    /// Blocks, in two directions.
    pub(super) blocks: (usize, usize),
    /// Threads of a block.
    pub(super) threads: u32,
    /// Shared memory of a block beyond what the kernel names itself.
    pub(super) shared_bytes: usize,
}

/// A GPU.
pub(super) struct Device {
    stream: Arc<CudaStream>,
    kernels: HashMap<&'static str, CudaFunction>,
    /// Its name, as the driver tells.
    pub(super) name: String,
}

impl Device {
    /// Opens the GPU of this number and loads the kernels, compiling them where that has not been done before.
    pub(super) fn open(number: usize) -> Result<Self, CudaError> {
        let (context, driver_major) = driver::open(number)?;
        let nvrtc = Nvrtc::find(driver_major)?;
        let (major, minor) = context
            .compute_capability()
            .map_err(CudaError::driver("tell the GPU's architecture"))?;
        let architecture = format!("sm_{major}{minor}");
        let kept = load(&context, image::image(&nvrtc, &architecture, false)?);
        // A file that was damaged on disk is made anew.
        let module = match kept {
            Ok(module) => module,
            Err(_) => load(&context, image::image(&nvrtc, &architecture, true)?)
                .map_err(CudaError::driver("load the kernels"))?,
        };
        let kernels = KERNELS
            .into_iter()
            .map(|name| Ok((name, module.load_function(name)?)))
            .collect::<Result<_, _>>()
            .map_err(CudaError::driver("find a kernel"))?;
        Ok(Self {
            stream: context.default_stream(),
            kernels,
            name: context
                .name()
                .map_err(CudaError::driver("tell the GPU's name"))?,
        })
    }

    /// Room for `count` values, not set.
    pub(super) fn room<T: DeviceRepr>(&self, count: usize) -> Result<CudaSlice<T>, BackendError> {
        // SAFETY: every operation writes what later ones read: activations row by row, K and V position by position. The
        // types used are plain numbers, of which any bytes are one.
        let room = unsafe { self.stream.alloc(count.max(1)) };
        room.map_err(|error| {
            BackendError(format!(
                "the GPU has no room for {} MiB more: {}",
                (count * size_of::<T>()) >> 20,
                name_of(error)
            ))
        })
    }

    /// A copy of `values` on the GPU.
    pub(super) fn upload<T: DeviceRepr>(&self, values: &[T]) -> Result<CudaSlice<T>, BackendError> {
        let mut room = self.room(values.len())?;
        if !values.is_empty() {
            self.stream
                .memcpy_htod(values, &mut room)
                .map_err(|error| refused("copy to the GPU", error))?;
        }
        Ok(room)
    }

    /// Waits for all that is queued, then fills `out` from the beginning of `from`, which is at least as long.
    pub(super) fn download(
        &self,
        from: &CudaSlice<f32>,
        out: &mut [f32],
    ) -> Result<(), BackendError> {
        if !out.is_empty() {
            let from = from.slice(..out.len());
            self.stream
                .memcpy_dtoh(&from, out)
                .map_err(|error| refused("copy from the GPU", error))?;
        }
        self.stream
            .synchronize()
            .map_err(|error| refused("finish the step", error))
    }

    /// Where a slice begins on the GPU, as an argument.
    pub(super) fn at<T>(&self, slice: &CudaSlice<T>, offset: usize) -> Arg {
        let (address, _) = slice.device_ptr(&self.stream);
        Arg::At(address + (offset * size_of::<T>()) as u64)
    }

    /// Queues a kernel. Nothing is done where there is nothing to do.
    pub(super) fn launch(
        &self,
        name: &'static str,
        grid: Grid,
        args: &[Arg],
    ) -> Result<(), BackendError> {
        let (x, y) = grid.blocks;
        if x == 0 || y == 0 {
            return Ok(());
        }
        let kernel = self
            .kernels
            .get(name)
            .ok_or_else(|| BackendError(format!("there is no kernel `{name}`")))?;
        let blocks = |n: usize, max: usize| {
            let n = Some(n).filter(|&n| n <= max);
            n.map(|n| n as u32)
                .ok_or_else(|| BackendError(format!("`{name}` would need more than {max} blocks")))
        };
        let config = LaunchConfig {
            grid_dim: (blocks(x, BLOCKS_X_MAX)?, blocks(y, BLOCKS_Y_MAX)?, 1),
            block_dim: (grid.threads, 1, 1),
            shared_mem_bytes: grid.shared_bytes as u32,
        };
        let mut launch = self.stream.launch_builder(kernel);
        for arg in args {
            match arg {
                Arg::At(address) => launch.arg(address),
                Arg::U32(value) => launch.arg(value),
                Arg::U64(value) => launch.arg(value),
                Arg::F32(value) => launch.arg(value),
            };
        }
        // SAFETY: each caller gives the arguments of the kernel's own signature, addresses of slices that it borrows and sizes
        // within them; freeing a slice is queued on the same stream, behind this.
        unsafe { launch.launch(config) }
            .map(|_| ())
            .map_err(|error| refused(name, error))
    }
}

/// Blocks that CUDA allows in the first direction.
const BLOCKS_X_MAX: usize = i32::MAX as usize;
/// Blocks that CUDA allows in the second direction.
const BLOCKS_Y_MAX: usize = 65_535;

fn load(
    context: &Arc<CudaContext>,
    image: Vec<u8>,
) -> Result<Arc<CudaModule>, cudarc::driver::DriverError> {
    context.load_module(Ptx::from_binary(image))
}

fn refused(what: &str, error: cudarc::driver::DriverError) -> BackendError {
    BackendError(format!("the GPU cannot {what}: {}", name_of(error)))
}
