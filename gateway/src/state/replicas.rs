//! The fleet as the gateway sees it now.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use chat_wire::thinking::Engine;
use http::HeaderValue;
use http::uri::Authority;
use routing_policies::ReplicaId;
use tokio::time::Instant;

use super::beliefs::Beliefs;
use super::gate::Gate;
use super::health::{Change, Health};
use super::models::{FleetModels, Model};
use crate::config::ReplicaConfig;
use crate::metrics::{Metrics, ReplicaMetrics};
use crate::upstream::pool::Pool;

/// One replica: where it is, how it is, and what is going on there.
#[derive(Debug)]
pub struct Replica {
    index: usize,
    id: ReplicaId,
    name: Arc<str>,
    authority: Authority,
    host_header: HeaderValue,
    name_header: HeaderValue,
    metrics: ReplicaMetrics,
    pool: Pool,
    gate: Gate,
    health: Mutex<Health>,
    /// Copy of the health's own flag, for the path of a request.
    ready: AtomicBool,
    beliefs: Arc<Beliefs>,
    /// Tokens of its cache as last told.
    cache_tokens: AtomicU64,
    /// As the configuration says.
    engine: Option<Engine>,
    /// It names its process in `/health`, as only this project's own replicas do.
    own: AtomicBool,
    /// It has been seen to split reasoning off by itself.
    splits: AtomicBool,
    /// When its cache was last found to be lost.
    emptied: Mutex<Option<Instant>>,
}

/// What a replica says of itself in an answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told<'a> {
    /// The process, where it tells.
    pub instance: Option<&'a str>,
    /// Tokens that its prefix cache holds.
    pub cache_tokens: u64,
}

impl Replica {
    fn new(
        index: usize,
        config: &ReplicaConfig,
        metrics: &Metrics,
        beliefs: &Arc<Beliefs>,
    ) -> Self {
        let header = |text: &str| {
            // Names and authorities were checked to be plain when the configuration was read.
            HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("unnamed"))
        };
        let series = metrics.replica(&config.name);
        Self {
            index,
            id: ReplicaId::of(&config.name),
            name: config.name.as_str().into(),
            authority: config.authority.clone(),
            host_header: header(config.authority.as_str()),
            name_header: header(&config.name),
            gate: Gate::new(series.breaker_open.clone()),
            metrics: series,
            pool: Pool::default(),
            health: Mutex::default(),
            ready: AtomicBool::new(false),
            beliefs: beliefs.clone(),
            cache_tokens: AtomicU64::new(0),
            engine: config.engine,
            own: AtomicBool::new(false),
            splits: AtomicBool::new(false),
            emptied: Mutex::default(),
        }
    }

    /// Its place in the fleet's order.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its id in decisions.
    #[must_use]
    pub fn id(&self) -> ReplicaId {
        self.id
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

    /// Its breaker.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
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

    /// Which engine it is: as the configuration says, else this project's own where it names its process, else nobody knows.
    #[must_use]
    pub fn engine(&self) -> Option<Engine> {
        let own = self.own.load(Ordering::Relaxed);
        self.engine.or(own.then_some(Engine::Pinion))
    }

    /// Whether it is known to split reasoning off by itself: what it calls content is then the answer from its first letter on.
    #[must_use]
    pub fn splits_reasoning(&self) -> bool {
        self.splits.load(Ordering::Relaxed)
    }

    /// An answer of its had reasoning in a field of its own.
    pub fn on_split_by_itself(&self) {
        if !self.splits_reasoning() {
            self.splits.store(true, Ordering::Relaxed);
        }
    }

    /// Requests there now.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        usize::try_from(self.metrics.in_flight.get()).unwrap_or(0)
    }

    /// Whether its cache was lost after `then`: what was sent to it before is not there any more.
    #[must_use]
    pub fn was_emptied_since(&self, then: Instant) -> bool {
        let emptied = *self.emptied.lock().unwrap_or_else(PoisonError::into_inner);
        emptied.is_some_and(|at| at > then)
    }

    /// A probe was answered.
    pub fn on_probe_ok(&self, told: Told<'_>) {
        let change = self.report(|health| health.on_ok(told.instance));
        self.own.store(told.instance.is_some(), Ordering::Relaxed);
        let name = &*self.name;
        if change == Change::Cold {
            self.metrics.cold_starts.inc();
            self.pool.clear();
            self.splits.store(false, Ordering::Relaxed);
            self.gate.reset();
            self.on_emptied();
            tracing::info!(
                replica = name,
                "replica was restarted: its prefix cache is empty"
            );
        }
        let before = self.cache_tokens.swap(told.cache_tokens, Ordering::Relaxed);
        if before != told.cache_tokens || matches!(change, Change::Ready | Change::Cold) {
            self.beliefs.join(self.id, told.cache_tokens);
        }
        if change == Change::Ready {
            tracing::info!(replica = name, "replica is ready");
        }
    }

    fn on_emptied(&self) {
        let mut emptied = self.emptied.lock().unwrap_or_else(PoisonError::into_inner);
        *emptied = Some(Instant::now());
        self.beliefs.forget(self.id);
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
        // A replica that names its process tells, when it is back, whether its cache is still there. Of another one the gateway has to
        // expect the worst.
        if change == Change::Unready && health.instance().is_none() {
            self.on_emptied();
        }
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
    pub fn new(configs: &[ReplicaConfig], metrics: &Metrics, beliefs: &Arc<Beliefs>) -> Self {
        let replica = |(index, config)| Arc::new(Replica::new(index, config, metrics, beliefs));
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
