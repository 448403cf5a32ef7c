//! The gateway as a process: two listeners, the probes, and an orderly end.

pub mod admin;
pub mod drain;
pub mod listen;
mod reload;
pub mod threads;
pub mod tls;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::config::Config;
use crate::metrics::Metrics;
use crate::stack::stack;
use crate::state::Known;
use crate::state::policy::PolicyStore;
use crate::upstream::client::Client;
use crate::upstream::connect::{Connect, Tcp};
use crate::upstream::probe;
use admin::Admin;
use drain::Tasks;
use listen::Listen;
use threads::Threads;
use tls::Tls;

/// A gateway with its ports bound, ready to run.
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    known: Arc<Known>,
    client: Arc<Client>,
    tls: Option<Arc<Tls>>,
    clients: TcpListener,
    operators: TcpListener,
}

/// Why a gateway cannot start, in words for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

impl Gateway {
    /// Loads what the configuration names and binds both ports.
    ///
    /// # Errors
    /// The policy or the certificate does not load, or a port is taken.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        Self::bind_over(config, Box::new(Tcp)).await
    }

    /// The same, reaching the replicas through `connect`.
    ///
    /// # Errors
    /// As [`Gateway::bind`].
    pub async fn bind_over(config: Config, connect: Box<dyn Connect>) -> Result<Self, StartError> {
        let policy =
            PolicyStore::load(config.policy.as_deref(), &config.replicas).map_err(StartError)?;
        let tls = config
            .tls
            .clone()
            .map(Tls::load)
            .transpose()
            .map_err(StartError)?;
        let known = Arc::new(Known::new(&config, policy, Metrics::new()));
        let client = Arc::new(Client::new(connect, config.timeouts));
        let clients = listen_on("listen", config.listen).await?;
        let operators = listen_on("admin_listen", config.admin_listen).await?;
        Ok(Self {
            config,
            known,
            client,
            tls,
            clients,
            operators,
        })
    }

    /// Where clients connect.
    ///
    /// # Errors
    /// The operating system does not tell.
    pub fn client_address(&self) -> std::io::Result<SocketAddr> {
        self.clients.local_addr()
    }

    /// Where operators connect.
    ///
    /// # Errors
    /// The operating system does not tell.
    pub fn admin_address(&self) -> std::io::Result<SocketAddr> {
        self.operators.local_addr()
    }

    /// What the gateway knows.
    #[must_use]
    pub fn known(&self) -> &Arc<Known> {
        &self.known
    }

    /// Serves until `shutdown` resolves, then takes no new request, lets answers in flight end within the
    /// configured limit, and returns. Operators are served until the very end.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let (tasks, clients_end) = Tasks::new();
        let (admin_tasks, admin_end) = Tasks::new();
        let Self {
            config,
            known,
            client,
            tls,
            clients,
            operators,
        } = self;
        let admin = Admin {
            metrics: known.metrics.clone(),
            known: known.clone(),
            draining: tasks.stop(),
        };
        admin_tasks.spawn(admin.run(operators, admin_tasks.clone()));
        probe::start(&tasks, &known, &client);
        reload::watch(&tasks, &known);
        if let Some(tls) = &tls {
            tls.watch(&tasks, known.metrics.clone());
        }
        let threads = match Threads::start(&tasks) {
            Ok(threads) => Arc::new(threads),
            Err(error) => return tracing::error!(%error, "no threads to speak with clients"),
        };
        let listen = Listen {
            service: stack(&config, &known, client),
            tls,
            tasks: tasks.clone(),
            request_head: config.timeouts.request_head,
            client_stall: config.timeouts.client_stall,
            connections_max: config.limits.connections_max,
            metrics: known.metrics.clone(),
        };
        tasks.spawn(listen.run(clients, threads.clone()));
        drop((tasks, admin_tasks));
        shutdown.await;
        let limit = config.timeouts.drain;
        tracing::info!(
            limit_seconds = limit.as_secs(),
            "draining: answers in flight go on"
        );
        if !clients_end.stop_and_wait(limit).await {
            tracing::warn!("the drain limit passed with answers still in flight; they are cut");
        }
        drop(threads);
        admin_end
            .stop_and_wait(std::time::Duration::from_secs(1))
            .await;
    }
}

async fn listen_on(key: &str, address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address)
        .await
        .map_err(|error| StartError(format!("`{key}` cannot bind {address}: {error}")))
}
