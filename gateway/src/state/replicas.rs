//! The fleet as the gateway sees it now.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use http::HeaderValue;
use http::uri::Authority;

use super::health::{Change, Health};
use super::models::{FleetModels, Model};
use crate::config::ReplicaConfig;
use crate::metrics::{Metrics, ReplicaMetrics};
use crate::upstream::pool::Pool;

/// One replica: where it is, how it is, and what is going on there.
#[derive(Debug)]
pub struct Replica {
    index: usize,
    name: Arc<str>,
    authority: Authority,
    host_header: HeaderValue,
    name_header: HeaderValue,
    metrics: ReplicaMetrics,
    pool: Pool,
    health: Mutex<Health>,
    /// Copy of the health's own flag, for the path of a request.
    ready: AtomicBool,
}

impl Replica {
    fn new(index: usize, config: &ReplicaConfig, metrics: &Metrics) -> Self {
        let header = |text: &str| {
            // Names and authorities were checked to be plain when the configuration was read.
            HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("unnamed"))
        };
        Self {
            index,
            name: config.name.as_str().into(),
            authority: config.authority.clone(),
            host_header: header(config.authority.as_str()),
            name_header: header(&config.name),
            metrics: metrics.replica(&config.name),
            pool: Pool::default(),
            health: Mutex::default(),
            ready: AtomicBool::new(false),
        }
    }

    /// Its place in the fleet's order.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Host and port.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The `host` header of requests to it.
    #[must_use]
    pub fn host_header(&self) -> &HeaderValue {
        &self.host_header
    }

    /// The `x-pinion-replica` header of answers from it.
    #[must_use]
    pub fn name_header(&self) -> &HeaderValue {
        &self.name_header
    }

    /// Its series.
    #[must_use]
    pub fn metrics(&self) -> &ReplicaMetrics {
        &self.metrics
    }

    /// Its idle connections.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Whether it takes requests.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// The process that answered its last probe, where it tells.
    #[must_use]
    pub fn instance(&self) -> Option<String> {
        self.health
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .instance()
            .map(str::to_owned)
    }

    /// Requests there now.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        usize::try_from(self.metrics.in_flight.get()).unwrap_or(0)
    }

    /// A probe was answered, by the process `instance` where it tells.
    pub fn on_probe_ok(&self, instance: Option<&str>) {
        let change = self.report(|health| health.on_ok(instance));
        let name = &*self.name;
        match change {
            Change::Ready => tracing::info!(replica = name, "replica is ready"),
            Change::Cold => {
                self.metrics.cold_starts.inc();
                self.pool.clear();
                tracing::info!(
                    replica = name,
                    "replica was restarted: its prefix cache is empty"
                );
            }
            Change::None | Change::Unready => {}
        }
    }

    /// A probe failed, for the reason `why`.
    pub fn on_probe_failed(&self, why: &str) {
        if self.report(Health::on_failure) == Change::Unready {
            let name = &*self.name;
            tracing::warn!(
                replica = name,
                why,
                "replica takes no requests: its probes fail"
            );
        }
    }

    /// Nobody listens at its address, as a probe or an attempt found.
    pub fn on_unreachable(&self, why: &str) {
        if self.report(Health::on_unreachable) == Change::Unready {
            let name = &*self.name;
            tracing::warn!(
                replica = name,
                why,
                "replica takes no requests: no connection"
            );
        }
    }

    fn report(&self, report: impl FnOnce(&mut Health) -> Change) -> Change {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let change = report(&mut health);
        self.ready.store(health.is_ready(), Ordering::Relaxed);
        self.metrics.ready.set(i64::from(health.is_ready()));
        change
    }
}

/// Counts a request at a replica for as long as it lives. It rides in the body of the answer, so every ending
/// takes it back.
#[derive(Debug)]
pub struct InFlight(Arc<Replica>);

impl InFlight {
    /// One more request at this replica.
    #[must_use]
    pub fn new(replica: &Arc<Replica>) -> Self {
        replica.metrics.in_flight.inc();
        Self(replica.clone())
    }

    /// The replica.
    #[must_use]
    pub fn replica(&self) -> &Arc<Replica> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.metrics.in_flight.dec();
    }
}

/// All replicas, fixed at start, and the models they serve.
#[derive(Debug)]
pub struct Fleet {
    replicas: Vec<Arc<Replica>>,
    lists: Mutex<Vec<Option<Vec<Model>>>>,
    models: ArcSwap<FleetModels>,
}

impl Fleet {
    /// The fleet of a configuration, nobody ready yet.
    #[must_use]
    pub fn new(configs: &[ReplicaConfig], metrics: &Metrics) -> Self {
        let replica = |(index, config)| Arc::new(Replica::new(index, config, metrics));
        let lists = vec![None; configs.len()];
        Self {
            replicas: configs.iter().enumerate().map(replica).collect(),
            models: ArcSwap::from_pointee(FleetModels::merge(&lists)),
            lists: Mutex::new(lists),
        }
    }

    /// The replicas in the order of the configuration.
    #[must_use]
    pub fn replicas(&self) -> &[Arc<Replica>] {
        &self.replicas
    }

    /// The models as last told.
    #[must_use]
    pub fn models(&self) -> Arc<FleetModels> {
        self.models.load_full()
    }

    /// The models as last told, for the path of a request.
    pub fn with_models<T>(&self, look: impl FnOnce(&FleetModels) -> T) -> T {
        look(&self.models.load())
    }

    /// A replica told its models.
    pub fn on_models(&self, replica: &Replica, models: Vec<Model>) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists[replica.index] = Some(models);
        self.models.store(Arc::new(FleetModels::merge(&lists)));
    }

    /// Whether any replica takes requests.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.replicas.iter().any(|replica| replica.is_ready())
    }
}
