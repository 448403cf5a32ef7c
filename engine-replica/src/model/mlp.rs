//! The feed-forward half of a layer: one network for every row, or a router and the experts that it chooses.

use super::config::ModelConfig;
use super::problem::ModelError;
use super::tensors::Finder;
use crate::backend::{Backend, BackendError, MixtureShape};
use crate::loader::tensor::TensorView;

/// Its tensors, still in their file.
pub(super) enum MlpViews<'a> {
    Dense(NetworkViews<'a>),
    Mixture {
        router: TensorView<'a>,
        experts: Vec<NetworkViews<'a>>,
    },
}

/// One gated network.
pub(super) struct NetworkViews<'a> {
    /// The gate's, then the up projection's.
    gate_up: [TensorView<'a>; 2],
    down: TensorView<'a>,
}

/// Looks all of them up, even after the first that is wrong.
pub(super) fn find_mlp<'a>(
    config: &ModelConfig,
    finder: &mut Finder<'a>,
    layer: usize,
) -> Option<MlpViews<'a>> {
    let (hidden, name) = (config.hidden, format!("model.layers.{layer}.mlp"));
    let Some(mixture) = config.mixture_of(layer) else {
        return find_network(finder, &name, (hidden, config.intermediate)).map(MlpViews::Dense);
    };
    let router = finder.get(&format!("{name}.gate.weight"), mixture.experts, hidden);
    let experts: Vec<_> = (0..mixture.experts)
        .map(|expert| {
            let name = format!("{name}.experts.{expert}");
            find_network(finder, &name, (hidden, mixture.intermediate))
        })
        .collect();
    Some(MlpViews::Mixture {
        router: router?,
        experts: experts.into_iter().collect::<Option<_>>()?,
    })
}

fn find_network<'a>(
    finder: &mut Finder<'a>,
    name: &str,
    (hidden, inner): (usize, usize),
) -> Option<NetworkViews<'a>> {
    let gate = finder.get(&format!("{name}.gate_proj.weight"), inner, hidden);
    let up = finder.get(&format!("{name}.up_proj.weight"), inner, hidden);
    let down = finder.get(&format!("{name}.down_proj.weight"), hidden, inner);
    Some(NetworkViews {
        gate_up: [gate?, up?],
        down: down?,
    })
}

/// Its weights on a backend.
pub(super) enum Mlp<B: Backend> {
    Dense {
        /// (2 · intermediate, hidden): the gate's rows, then the up projection's.
        gate_up: B::Matrix,
        /// (hidden, intermediate)
        down: B::Matrix,
    },
    Mixture {
        /// (experts, hidden)
        router: B::Matrix,
        /// As of a dense layer, for each expert and of its width.
        gate_up: B::Experts,
        down: B::Experts,
    },
}

pub(super) fn upload<B: Backend>(
    views: &MlpViews<'_>,
    backend: &mut B,
) -> Result<Mlp<B>, BackendError> {
    Ok(match views {
        MlpViews::Dense(network) => Mlp::Dense {
            gate_up: backend.upload_matrix(&network.gate_up)?,
            down: backend.upload_matrix(&[network.down])?,
        },
        MlpViews::Mixture { router, experts } => {
            let gate_up: Vec<_> = experts.iter().map(|e| e.gate_up.to_vec()).collect();
            let down: Vec<_> = experts.iter().map(|e| vec![e.down]).collect();
            Mlp::Mixture {
                router: backend.upload_matrix(&[*router])?,
                gate_up: backend.upload_experts(&gate_up)?,
                down: backend.upload_experts(&down)?,
            }
        }
    })
}

/// Its buffers, made once; `rows` is `Capacity::rows_max`.
pub(super) struct MlpScratch<B: Backend> {
    /// (rows, 2 · intermediate)
    gate_up: B::Buffer,
    /// (rows, intermediate)
    activated: B::Buffer,
    /// For models with experts.
    mixture: Option<MixtureScratch<B>>,
}

struct MixtureScratch<B: Backend> {
    chosen: usize,
    routing: B::Routing,
    /// (rows, experts)
    logits: B::Buffer,
    /// (slots, hidden): what the experts read, and then what they give.
    slots: B::Buffer,
    /// (slots, 2 · an expert's intermediate)
    gate_up: B::Buffer,
    /// (slots, an expert's intermediate)
    activated: B::Buffer,
}

impl<B: Backend> MlpScratch<B> {
    pub(super) fn new(
        backend: &mut B,
        config: &ModelConfig,
        rows: usize,
    ) -> Result<Self, ModelError> {
        let dense = (0..config.layers).any(|layer| config.mixture_of(layer).is_none());
        let dense_rows = if dense { rows } else { 0 };
        let mixture = match &config.mixture {
            None => None,
            Some(mixture) => {
                let shape = MixtureShape {
                    layers: config.layers,
                    experts: mixture.experts,
                    chosen: mixture.chosen,
                    renormalise: mixture.renormalise,
                };
                let slots = rows.saturating_mul(mixture.chosen);
                Some(MixtureScratch {
                    chosen: mixture.chosen,
                    routing: backend.new_routing(rows, shape)?,
                    logits: backend.new_buffer(rows, mixture.experts)?,
                    slots: backend.new_buffer(slots, config.hidden)?,
                    gate_up: backend.new_buffer(slots, 2 * mixture.intermediate)?,
                    activated: backend.new_buffer(slots, mixture.intermediate)?,
                })
            }
        };
        Ok(Self {
            gate_up: backend.new_buffer(dense_rows, 2 * config.intermediate)?,
            activated: backend.new_buffer(dense_rows, config.intermediate)?,
            mixture,
        })
    }

    /// How often each expert was chosen (layers, experts) since this was last asked; nothing for a dense model.
    pub(super) fn take_expert_counts(&mut self, backend: &mut B) -> Result<Vec<u32>, BackendError> {
        let mut counts = Vec::new();
        if let Some(mixture) = &mut self.mixture {
            backend.take_expert_counts(&mut mixture.routing, &mut counts)?;
        }
        Ok(counts)
    }
}

impl<B: Backend> Mlp<B> {
    /// hidden (rows, hidden) = mlp(hidden), in layer `layer`.
    pub(super) fn compute(
        &self,
        b: &mut B,
        (rows, layer): (usize, usize),
        hidden: &mut B::Buffer,
        s: &mut MlpScratch<B>,
    ) {
        match (self, &mut s.mixture) {
            (Self::Dense { gate_up, down }, _) => {
                b.matmul(rows, gate_up, hidden, &mut s.gate_up);
                b.silu_mul(rows, &s.gate_up, &mut s.activated);
                b.matmul(rows, down, &s.activated, hidden);
            }
            (
                Self::Mixture {
                    router,
                    gate_up,
                    down,
                },
                Some(s),
            ) => {
                b.matmul(rows, router, hidden, &mut s.logits);
                b.route(rows, layer, &mut s.logits, &mut s.routing);
                b.scatter(&s.routing, hidden, &mut s.slots);
                b.expert_matmul(&s.routing, gate_up, &s.slots, &mut s.gate_up);
                b.silu_mul(rows * s.chosen, &s.gate_up, &mut s.activated);
                b.expert_matmul(&s.routing, down, &s.activated, &mut s.slots);
                b.combine(&s.routing, &s.slots, hidden);
            }
            // A layer has experts only where the config has a mixture, which is where the scratch has one.
            (Self::Mixture { .. }, None) => {}
        }
    }
}
