//! Why there is no CUDA backend here.

/// Why a GPU cannot be used; says what is missing and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    /// No libcuda.
    #[error("there is no NVIDIA driver here (libcuda.so.1 is not found)")]
    NoDriver,
    /// A libcuda of another time.
    #[error("the NVIDIA driver lacks `{symbol}`; install one for CUDA {DRIVER_MIN} or later")]
    Lacks {
        /// The first function of those needed that is not there.
        symbol: &'static str,
    },
    /// A driver that is older than the kernels need.
    #[error(
        "the NVIDIA driver is made for CUDA {0}.{1}; install one for CUDA {DRIVER_MIN} or later"
    )]
    OldDriver(i32, i32),
    /// A driver without a GPU.
    #[error("the NVIDIA driver finds no GPU")]
    NoDevice,
    /// A number that no GPU has.
    #[error("there is no GPU {asked}; the NVIDIA driver finds {count}, numbered from 0")]
    NoSuchDevice {
        /// As asked for.
        asked: usize,
        /// How many there are.
        count: usize,
    },
    /// No libnvrtc that fits the driver.
    #[error(
        "NVRTC, which compiles the kernels, is not found: no {names} in the system's library path{folders}; install \
         CUDA's NVRTC, or say where CUDA lies with CUDA_HOME{refused}"
    )]
    NoNvrtc {
        /// The file names looked for.
        names: String,
        /// The folders looked in besides, or nothing.
        folders: String,
        /// Libraries that are there and cannot be used, or nothing.
        refused: String,
    },
    /// The kernels do not compile for this GPU.
    #[error("NVRTC cannot compile the kernels for {architecture}: {log}")]
    Compile {
        /// As `sm_90`.
        architecture: String,
        /// What it says.
        log: String,
    },
    /// The driver said no.
    #[error("the NVIDIA driver cannot {what}: {error}")]
    Driver {
        /// What it was asked for.
        what: &'static str,
        /// What it answered.
        error: String,
    },
}

/// The oldest CUDA whose driver is taken, by its major version.
pub(super) const DRIVER_MIN: i32 = 12;

impl CudaError {
    /// Makes an error of the driver's answer.
    pub(super) fn driver(
        what: &'static str,
    ) -> impl FnOnce(cudarc::driver::DriverError) -> CudaError {
        move |error| CudaError::Driver {
            what,
            error: name_of(error),
        }
    }
}

/// The driver's own name for an error, as `CUDA_ERROR_OUT_OF_MEMORY`.
pub(super) fn name_of(error: cudarc::driver::DriverError) -> String {
    format!("{:?}", error.0)
}
