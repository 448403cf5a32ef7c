//! Making and registering series.

use prometheus::core::Collector;
use prometheus::{
    Gauge, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
};

/// Makes series with the labels that all of them carry.
pub(super) struct Maker<'a> {
    pub(super) registry: Registry,
    pub(super) model: &'a str,
}

impl Maker<'_> {
    /// The labels are the series' own and not the registry's, which would write them in another order at each start.
    pub(super) fn opts(&self, name: &str, help: &str) -> Opts {
        Opts::new(name, help)
            .const_label("model_name", self.model)
            .const_label("engine", "0")
    }

    pub(super) fn add<C: Collector + Clone + 'static>(
        &self,
        series: C,
    ) -> Result<C, prometheus::Error> {
        self.registry.register(Box::new(series.clone()))?;
        Ok(series)
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
        self.add(IntGauge::with_opts(self.opts(name, help))?)
    }

    pub(super) fn share(&self, name: &str, help: &str) -> Result<Gauge, prometheus::Error> {
        self.add(Gauge::with_opts(self.opts(name, help))?)
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> Result<IntCounter, prometheus::Error> {
        self.add(IntCounter::with_opts(self.opts(name, help))?)
    }

    pub(super) fn counters(
        &self,
        name: &str,
        help: &str,
        label: &str,
    ) -> Result<IntCounterVec, prometheus::Error> {
        self.add(IntCounterVec::new(self.opts(name, help), &[label])?)
    }

    pub(super) fn histogram(
        &self,
        name: &str,
        help: &str,
        buckets: &[f64],
    ) -> Result<Histogram, prometheus::Error> {
        let opts = HistogramOpts::from(self.opts(name, help)).buckets(buckets.to_vec());
        self.add(Histogram::with_opts(opts)?)
    }
}
