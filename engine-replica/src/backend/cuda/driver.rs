//! Finding the NVIDIA driver. Nothing of `cudarc` is called before this has passed: its functions panic where the library or a
//! function in it is missing.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::cudaError_enum::CUDA_ERROR_NO_DEVICE;
use cudarc::driver::{CudaContext, result, sys};

use super::error::{CudaError, DRIVER_MIN};

/// All functions of libcuda that the backend calls, through `cudarc`. The simulator's libcuda has these and no others, so that
/// a call beyond the list fails a test.
const NEEDED: [&str; 23] = [
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAllocAsync",
    "cuMemAlloc_v2",
    "cuMemFreeAsync",
    "cuMemFree_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamSynchronize",
];

/// A GPU's context, and the major version of the CUDA that its driver is made for.
pub(super) fn open(device: usize) -> Result<(Arc<CudaContext>, i32), CudaError> {
    // SAFETY: loading a library runs its initialisers, which is the purpose here; the names are the driver's own.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    // SAFETY: as above; the library is there, so that `culib` finds it and does not panic.
    let library = unsafe { sys::culib() };
    for symbol in NEEDED {
        // SAFETY: the address is only asked for; nothing is called through it.
        if unsafe { library.get::<*mut c_void>(symbol.as_bytes()) }.is_err() {
            return Err(CudaError::Lacks { symbol });
        }
    }
    let mut version = 0;
    // SAFETY: the function is there, may be called before `cuInit`, and writes one integer.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .map_err(CudaError::driver("tell its version"))?;
    // 1000 · major + 10 · minor.
    let (major, minor) = (version / 1000, version % 1000 / 10);
    if major < DRIVER_MIN {
        return Err(CudaError::OldDriver(major, minor));
    }
    result::init().map_err(|error| match error.0 {
        CUDA_ERROR_NO_DEVICE => CudaError::NoDevice,
        _ => CudaError::driver("start")(error),
    })?;
    let count = result::device::get_count().map_err(CudaError::driver("count its GPUs"))?;
    let count = usize::try_from(count).unwrap_or(0);
    if count == 0 {
        return Err(CudaError::NoDevice);
    }
    if device >= count {
        return Err(CudaError::NoSuchDevice {
            asked: device,
            count,
        });
    }
    let context = CudaContext::new(device).map_err(CudaError::driver("open the GPU"))?;
    // SAFETY: there is one stream, so that no slice is ever used on two; the driver keeps the order.
    unsafe { context.disable_event_tracking() };
    Ok((context, major))
}
