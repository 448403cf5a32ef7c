//! Cosines and sines of the rotary embedding.

use super::config::ModelConfig;
use crate::backend::{Backend, BackendError, RopeTable};

/// The table for positions `0..positions`: angle of pair `i` at position `p` is p · theta^(−2i / head_dim), computed
/// in f64 and rounded once.
pub(super) fn table<B: Backend>(
    backend: &mut B,
    config: &ModelConfig,
    positions: usize,
) -> Result<RopeTable<B::Vector>, BackendError> {
    let half = config.head_dim / 2;
    let theta = f64::from(config.rope_theta);
    let frequencies: Vec<f64> = (0..half)
        .map(|pair| theta.powf(-((2 * pair) as f64) / config.head_dim as f64))
        .collect();
    let angles = |f: fn(f64) -> f64| -> Vec<f32> {
        (0..positions)
            .flat_map(|p| frequencies.iter().map(move |w| f(p as f64 * w) as f32))
            .collect()
    };
    Ok(RopeTable {
        cos: backend.upload_vector(&angles(f64::cos))?,
        sin: backend.upload_vector(&angles(f64::sin))?,
        style: config.rope_style,
    })
}
