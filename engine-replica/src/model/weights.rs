//! A model's weights on a backend.

use super::config::ModelConfig;
use super::mlp::{self, Mlp};
use super::problem::ModelError;
use super::tensors::{self, LayerViews, Views};
use crate::backend::{Backend, BackendError};
use crate::loader::tensor::{TensorSource, TensorView};

/// All weights of a model.
pub struct Weights<B: Backend> {
    /// (vocab, hidden)
    pub(super) embedding: B::Matrix,
    /// In order.
    pub(super) layers: Vec<Layer<B>>,
    /// (hidden)
    pub(super) norm: B::Vector,
    /// (vocab, hidden); `None` is the embedding again.
    pub(super) output: Option<B::Matrix>,
}

/// The weights of one layer.
pub(super) struct Layer<B: Backend> {
    /// (hidden)
    pub(super) attention_norm: B::Vector,
    /// (qkv_width, hidden)
    pub(super) qkv: B::Matrix,
    /// (head_dim) each, for queries and keys; Qwen3 only.
    pub(super) qk_norm: Option<(B::Vector, B::Vector)>,
    /// (hidden, q_width)
    pub(super) attention_out: B::Matrix,
    /// (hidden)
    pub(super) mlp_norm: B::Vector,
    pub(super) mlp: Mlp<B>,
}

/// Checks every tensor that the config's family needs, then uploads them all.
pub fn build<B: Backend>(
    config: &ModelConfig,
    tensors: &dyn TensorSource,
    backend: &mut B,
) -> Result<Weights<B>, ModelError> {
    Ok(upload(&tensors::find(config, tensors)?, backend)?)
}

fn upload<B: Backend>(views: &Views<'_>, backend: &mut B) -> Result<Weights<B>, BackendError> {
    let layers = views
        .layers
        .iter()
        .map(|layer| upload_layer(layer, backend));
    let layers = layers.collect::<Result<_, _>>()?;
    Ok(Weights {
        embedding: backend.upload_matrix(&[views.embedding])?,
        layers,
        norm: vector(&views.norm, backend)?,
        output: views
            .output
            .map(|view| backend.upload_matrix(&[view]))
            .transpose()?,
    })
}

fn upload_layer<B: Backend>(
    views: &LayerViews<'_>,
    backend: &mut B,
) -> Result<Layer<B>, BackendError> {
    let qk_norm = match &views.qk_norm {
        Some((q, k)) => Some((vector(q, backend)?, vector(k, backend)?)),
        None => None,
    };
    Ok(Layer {
        attention_norm: vector(&views.attention_norm, backend)?,
        qkv: backend.upload_matrix(&views.qkv)?,
        qk_norm,
        attention_out: backend.upload_matrix(&[views.attention_out])?,
        mlp_norm: vector(&views.mlp_norm, backend)?,
        mlp: mlp::upload(&views.mlp, backend)?,
    })
}

fn vector<B: Backend>(view: &TensorView<'_>, backend: &mut B) -> Result<B::Vector, BackendError> {
    backend.upload_vector(&crate::backend::dequantise(view))
}
