//! One replica process: how it is started and ended.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::output::LastLines;

/// How long a replica has to end after SIGTERM before it is killed.
pub(super) const TERMINATE_LIMIT: Duration = Duration::from_secs(10);

/// How to start one replica, the first time and every other.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Its name in the fleet.
    pub(super) name: String,
    /// The executable.
    pub(super) binary: PathBuf,
    /// The model.
    pub(super) model: PathBuf,
    /// Where it listens.
    pub(super) address: SocketAddr,
    /// More arguments, as the person typed them.
    pub(super) more: Vec<String>,
    /// Between a death and the first new start; doubled with each death that follows.
    pub(super) restart_wait: Duration,
}

/// A running replica.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// Its last lines.
    pub(super) last: LastLines,
}

impl Plan {
    /// Starts it. Its output is passed on by the futures returned, which end when its outputs close.
    pub(super) fn start(&self) -> std::io::Result<(Process, impl Future<Output = ()> + use<>)> {
        let mut command = Command::new(&self.binary);
        command
            .arg("serve")
            .arg("--model")
            .arg(&self.model)
            .args(["--listen", &self.address.to_string(), "--name", &self.name])
            // However this process ends, its replicas end with it.
            .arg("--exit-with-parent")
            .args(&self.more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A terminal sends Ctrl-C to its whole process group; the replicas must outlive the drain.
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let last = LastLines::default();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (name, lines) = (self.name.clone(), last.clone());
        let passing = async move {
            let out = async {
                if let Some(out) = out {
                    lines.clone().pass_on(name.clone(), out).await;
                }
            };
            let err = async {
                if let Some(err) = err {
                    lines.clone().pass_on(name.clone(), err).await;
                }
            };
            tokio::join!(out, err);
        };
        Ok((Process { child, last }, passing))
    }
}

impl Process {
    /// Waits for its end. Safe to drop and call again.
    pub(super) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Asks it to end, and kills it when it takes too long.
    pub(super) async fn terminate(mut self) {
        let pid = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let asked = pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok());
        if asked && timeout(TERMINATE_LIMIT, self.child.wait()).await.is_ok() {
            return;
        }
        if let Err(error) = self.child.kill().await {
            tracing::debug!(%error, "the replica had ended already");
        }
    }
}
