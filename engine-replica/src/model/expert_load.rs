//! How evenly the experts of each layer are used.
//!
//! A series for each expert would be thousands (48 layers of 128), and what matters is one number a layer: how much
//! the busiest expert has to do beside the mean, since a step waits for it.

use std::sync::{Mutex, PoisonError};

use super::config::ModelConfig;

/// Choices per expert that the figures look back on, about: when a layer has this many, all its counts are halved. So
/// they follow the traffic, whoever reads them and however often.
const WINDOW_CHOICES_PER_EXPERT: u64 = 1024;

/// What the engine thread counts and others read.
#[derive(Debug)]
pub struct ExpertLoad {
    experts: usize,
    /// Numbers of the layers that have experts.
    layers: Vec<usize>,
    /// (layers with experts, experts): recent choices.
    recent: Mutex<Vec<u64>>,
}

/// The use of one layer's experts of late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerLoad {
    /// The layer, from 0.
    pub layer: usize,
    /// Choices of the busiest expert over the mean: from 1, all alike, to the number of experts; 0 before the first.
    pub busiest_over_mean: f64,
    /// Experts that were not chosen.
    pub idle: usize,
}

impl ExpertLoad {
    pub(super) fn of(config: &ModelConfig) -> Option<Self> {
        let experts = config.mixture.as_ref()?.experts;
        let layers: Vec<usize> = (0..config.layers)
            .filter(|&layer| config.mixture_of(layer).is_some())
            .collect();
        let recent = Mutex::new(vec![0; layers.len() * experts]);
        Some(Self {
            experts,
            layers,
            recent,
        })
    }

    /// With these recent choices, each under its layer's number and of as many experts.
    #[cfg(test)]
    pub(crate) fn of_counts(layers: &[(usize, Vec<u64>)]) -> Self {
        Self {
            experts: layers[0].1.len(),
            layers: layers.iter().map(|(layer, _)| *layer).collect(),
            recent: Mutex::new(
                layers
                    .iter()
                    .flat_map(|(_, counts)| counts.clone())
                    .collect(),
            ),
        }
    }

    /// Adds the choices of a step (all layers, experts).
    pub(super) fn record(&self, counts: &[u32]) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let window = WINDOW_CHOICES_PER_EXPERT * self.experts as u64;
        for (recent, &layer) in recent.chunks_exact_mut(self.experts).zip(&self.layers) {
            let counts = &counts[layer * self.experts..][..self.experts];
            for (recent, &count) in recent.iter_mut().zip(counts) {
                *recent = recent.saturating_add(count.into());
            }
            if recent.iter().sum::<u64>() > window {
                recent.iter_mut().for_each(|count| *count /= 2);
            }
        }
    }

    /// The load of each layer that has experts, in order.
    pub fn layers(&self) -> Vec<LayerLoad> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let layers = recent.chunks_exact(self.experts).zip(&self.layers);
        layers.map(|(counts, &layer)| of(layer, counts)).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for a dashboard")]
fn of(layer: usize, counts: &[u64]) -> LayerLoad {
    let sum: u64 = counts.iter().sum();
    let busiest = counts.iter().max().copied().unwrap_or(0);
    LayerLoad {
        layer,
        busiest_over_mean: busiest as f64 * counts.len() as f64 / sum.max(1) as f64,
        idle: counts.iter().filter(|&&count| count == 0).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> ExpertLoad {
        ExpertLoad::of_counts(&[(1, vec![0; 4])])
    }

    #[track_caller]
    fn check(load: &ExpertLoad, busiest_over_mean: f64, idle: usize) {
        let expect = LayerLoad {
            layer: 1,
            busiest_over_mean,
            idle,
        };
        assert_eq!(load.layers(), [expect]);
    }

    #[test]
    fn the_busiest_expert_is_told_beside_the_mean_and_dense_layers_are_left_out() {
        let load = load();
        check(&load, 0.0, 4);
        load.record(&[9, 9, 9, 9, 1, 5, 0, 2]);
        check(&load, 2.5, 1);
        load.record(&[9, 9, 9, 9, 7, 3, 8, 6]);
        check(&load, 1.0, 0);
    }

    #[test]
    fn old_choices_fade() {
        let load = load();
        load.record(&[0, 0, 0, 0, 4096, 0, 0, 0]);
        check(&load, 4.0, 3);
        for _ in 0..200 {
            load.record(&[0, 0, 0, 0, 0, 64, 64, 64]);
        }
        let [layer] = load.layers()[..] else {
            panic!("one layer")
        };
        assert!(layer.busiest_over_mean < 1.4, "{layer:?}");
    }
}
