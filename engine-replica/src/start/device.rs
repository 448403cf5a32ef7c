//! What computes: as asked for, or the fastest that is here.

use super::StartError;
use crate::backend::cuda::{Cuda, CudaError};
use crate::cli::{Device, EngineArgs};
use crate::engine::step::StepModel;
use crate::loader::Weights;
use crate::model::config::ModelConfig;
use crate::model::{self, BackendChoice, Capacity, ModelError};

/// A backend that is ready, and how to speak of it.
pub(super) struct Compute {
    backend: Backend,
    /// What it is, as `cpu, 4 threads`.
    pub(super) name: String,
    /// Why it was taken.
    pub(super) why: String,
}

enum Backend {
    Host(BackendChoice),
    Gpu(Box<Cuda>),
}

impl Compute {
    /// Opens what `args` ask for. `auto` takes GPU 0, and the CPU where there is none or it cannot be used for this model.
    pub(super) fn choose(args: &EngineArgs, config: &ModelConfig) -> Result<Self, StartError> {
        let asked = || "as asked for".to_owned();
        match args.device {
            Device::Cuda(number) => {
                let opened = Cuda::open(number as usize);
                let cuda = opened.map_err(|why| no_gpu(args.device, why))?;
                Ok(Self::gpu(cuda, number, asked()))
            }
            Device::Auto if config.mixture.is_some() => {
                let why = "auto: the CUDA backend has no kernels for mixtures of experts";
                Ok(Self::cpu(args, why.to_owned()))
            }
            Device::Auto => Ok(match Cuda::open(0) {
                Ok(cuda) => Self::gpu(cuda, 0, "auto: a GPU is here".to_owned()),
                Err(error) => Self::cpu(args, format!("auto: {error}")),
            }),
            Device::Cpu => Ok(Self::cpu(args, asked())),
            Device::Reference => Ok(Self {
                backend: Backend::Host(BackendChoice::Reference),
                name: "reference, 1 thread".to_owned(),
                why: asked(),
            }),
        }
    }

    fn gpu(cuda: Cuda, number: u32, why: String) -> Self {
        Self {
            name: format!("cuda:{number}, {}", cuda.gpu()),
            backend: Backend::Gpu(Box::new(cuda)),
            why,
        }
    }

    fn cpu(args: &EngineArgs, why: String) -> Self {
        let threads = args.threads.map(|threads| threads as usize);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let name = match threads.unwrap_or(cores) {
            1 => "cpu, 1 thread".to_owned(),
            many => format!("cpu, {many} threads"),
        };
        Self {
            backend: Backend::Host(BackendChoice::Cpu { threads }),
            name,
            why,
        }
    }

    /// Puts a model's weights where it computes.
    pub(super) fn load(
        self,
        weights: &Weights,
        capacity: Capacity,
    ) -> Result<Box<dyn StepModel>, ModelError> {
        let (config, tensors) = (&weights.config, &weights.tensors);
        match self.backend {
            Backend::Host(choice) => model::load(config, tensors, choice, capacity),
            Backend::Gpu(cuda) => model::load_on(*cuda, config, tensors, capacity),
        }
    }
}

fn no_gpu(device: Device, why: CudaError) -> StartError {
    StartError::Device { device, why }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::loader;

    #[test]
    fn auto_computes_a_mixture_of_experts_on_the_cpu_and_says_why() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/qwen3moe-random");
        let config = loader::open_weights(&folder).unwrap().config;
        let line = "engine-replica serve --threads 1";
        let Command::Serve(args) = Cli::parse_from(line.split(' ')).command else {
            panic!("`serve` is another command");
        };
        let compute = Compute::choose(&args.engine, &config).unwrap();
        assert_eq!(compute.name, "cpu, 1 thread");
        assert_eq!(
            compute.why,
            "auto: the CUDA backend has no kernels for mixtures of experts"
        );
    }
}
