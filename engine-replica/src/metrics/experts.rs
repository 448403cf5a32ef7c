//! How evenly a mixture's experts are used: two series a layer, whatever the number of experts.

use std::sync::Arc;

use prometheus::{GaugeVec, IntGaugeVec};

use super::make::Maker;
use crate::model::ExpertLoad;

/// Gauges that follow the model's own figures.
pub(super) struct ExpertSeries {
    load: Arc<ExpertLoad>,
    busiest_over_mean: GaugeVec,
    idle: IntGaugeVec,
}

impl ExpertSeries {
    /// `None` for a model without experts, which has no such series.
    pub(super) fn new(
        made: &Maker<'_>,
        load: Option<Arc<ExpertLoad>>,
    ) -> Result<Option<Self>, prometheus::Error> {
        let Some(load) = load else {
            return Ok(None);
        };
        let busiest = made.opts(
            "replica_expert_load_max_over_mean",
            "Choices of a layer's busiest expert over the mean of its experts, over about the last thousand choices an \
             expert: 1 is even, the number of experts is all on one; 0 before the first.",
        );
        let idle = made.opts(
            "replica_experts_idle",
            "Experts of a layer that none of those choices went to.",
        );
        Ok(Some(Self {
            load,
            busiest_over_mean: made.add(GaugeVec::new(busiest, &["layer"])?)?,
            idle: made.add(IntGaugeVec::new(idle, &["layer"])?)?,
        }))
    }

    pub(super) fn refresh(&self) {
        for load in self.load.layers() {
            let layer = load.layer.to_string();
            self.busiest_over_mean
                .with_label_values(&[&layer])
                .set(load.busiest_over_mean);
            let idle = i64::try_from(load.idle).unwrap_or(i64::MAX);
            self.idle.with_label_values(&[&layer]).set(idle);
        }
    }
}
