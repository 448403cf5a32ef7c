//! `gateway up`: replicas of one model and the gateway in front of them, as one thing that starts and ends together.

mod banner;
mod child;
mod output;
mod sample;
mod supervise;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::uri::Authority;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::cli::Up;
use crate::config::{Config, ReplicaConfig};
use crate::serve::Gateway;
use crate::serve::drain::Tasks;
use child::{Plan, TERMINATE_LIMIT};

/// Why the system did not come up, or went down, in words for the person who started it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UpError(String);

/// Starts everything, says where to talk, and serves until `shutdown` resolves or a replica dies before it was ready.
///
/// # Errors
/// Something is missing, a port is taken, or a replica died at its start: with its last words.
pub async fn run(options: Up, shutdown: impl Future<Output = ()>) -> Result<(), UpError> {
    let binary = find_binary(options.replica_bin.clone())?;
    if !options.is_builtin() && !options.model.exists() {
        let model = options.model.display();
        return Err(UpError(format!(
            "--model {model}: no such file or folder; `builtin` is the model inside the replica"
        )));
    }
    let mut replicas = Vec::new();
    let mut plans = Vec::new();
    for index in 0..options.replicas {
        let name = format!("replica-{index}");
        let address = free_address().await?;
        replicas.push(ReplicaConfig::new(name.clone(), authority(address)?));
        plans.push(Plan {
            name,
            binary: binary.clone(),
            model: options.model.clone(),
            address,
            more: options.replica_args.clone(),
            restart_wait: Duration::from_secs(options.restart_seconds),
        });
    }
    // Before any replica loads its model, so that a taken port is told at once.
    let mut config = Config::new(options.listen, options.admin_listen, replicas);
    config.policy.clone_from(&options.policy);
    let gateway = Gateway::bind(config)
        .await
        .map_err(|error| UpError(error.to_string()))?;
    let (tasks, supervised) = Tasks::new();
    let (report, mut deaths) = mpsc::channel(1);
    for (plan, replica) in plans.into_iter().zip(gateway.known().fleet.replicas()) {
        let (replica, stop) = (replica.clone(), tasks.stop());
        tasks.spawn(supervise::supervise(plan, replica, stop, report.clone()));
    }
    drop(report);
    let addresses = (gateway.client_address(), gateway.admin_address());
    if let (Ok(clients), Ok(operators)) = addresses {
        let announce =
            banner::when_ready(gateway.known().clone(), options.clone(), clients, operators);
        let mut stop = tasks.stop();
        tasks.spawn(async move {
            tokio::select! {
                () = announce => {}
                () = stop.wait() => {}
            }
        });
    }
    drop(tasks);
    let mut death = None;
    let end = async {
        tokio::select! {
            () = shutdown => {}
            Some(words) = deaths.recv() => death = Some(words),
        }
    };
    // Answers in flight end first, with the replicas still there.
    gateway.run(end).await;
    supervised
        .stop_and_wait(TERMINATE_LIMIT + Duration::from_secs(2))
        .await;
    death.map_or(Ok(()), |words| Err(UpError(words)))
}

/// The replica's executable: as told, else the one beside this.
fn find_binary(told: Option<PathBuf>) -> Result<PathBuf, UpError> {
    if let Some(path) = told {
        let missing = || UpError(format!("--replica-bin {}: no such file", path.display()));
        return path.is_file().then_some(path.clone()).ok_or_else(missing);
    }
    let here = std::env::current_exe().ok();
    let folder = here
        .as_deref()
        .and_then(Path::parent)
        .unwrap_or(Path::new("."));
    let path = folder.join("engine-replica");
    if path.is_file() {
        return Ok(path);
    }
    let folder = folder.display();
    Err(UpError(format!(
        "no `engine-replica` in {folder}; build it with `cargo build --release -p engine-replica`, or name it with --replica-bin"
    )))
}

/// An address of this machine whose port is free now.
async fn free_address() -> Result<SocketAddr, UpError> {
    let bound = TcpListener::bind(("127.0.0.1", 0))
        .await
        .and_then(|port| port.local_addr());
    bound.map_err(|error| UpError(format!("no free port on 127.0.0.1: {error}")))
}

fn authority(address: SocketAddr) -> Result<Authority, UpError> {
    Authority::try_from(address.to_string()).map_err(|error| UpError(error.to_string()))
}
