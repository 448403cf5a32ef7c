//! `gateway serve` with a configuration file, in front of replicas that a test holds.

use std::{fmt::Write as _, net::SocketAddr, process::Command, time::Duration};

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{
    assets,
    fleet::{self, Running, free_address},
    http, prom,
    scripted::Scripted,
};

/// Longest that the gateway may take to see what has changed, in seconds; it probes each second.
const SEEN_SECONDS_MAX: u64 = 30;
/// Tries to start the gateway on ports that are free.
const STARTS_MAX: u32 = 5;

/// A running gateway. It ends with the value.
#[derive(Debug)]
pub struct Front {
    /// Its process.
    pub process: Running,
    /// Where clients talk.
    pub listen: SocketAddr,
    /// Where operators look.
    pub admin: SocketAddr,
    _folder: TempDir,
}

impl Front {
    /// Starts a gateway in front of `replicas`, called `replica-0` and so on, with `policy` or its default policy, and waits until
    /// it takes all of them for ready.
    ///
    /// # Panics
    /// When it does not in time.
    pub async fn start(replicas: &[Scripted], policy: Option<&str>) -> Self {
        for _ in 1..STARTS_MAX {
            let mut front = Self::launch(replicas, policy);
            let until = Instant::now() + Duration::from_secs(SEEN_SECONDS_MAX);
            while front.ready().await.is_none()
                && !front.process.is_over()
                && Instant::now() < until
            {
                sleep(Duration::from_millis(20)).await;
            }
            // Between the look for a free port and its use, another process may have taken it.
            if !front.process.log().contains("Address already in use") {
                front.wait_for_ready(replicas.len()).await;
                return front;
            }
        }
        let mut front = Self::launch(replicas, policy);
        front.wait_for_ready(replicas.len()).await;
        front
    }

    fn launch(replicas: &[Scripted], policy: Option<&str>) -> Self {
        let (listen, admin) = (free_address(), free_address());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut config = format!("listen = \"{listen}\"\nadmin_listen = \"{admin}\"\n");
        if let Some(policy) = policy {
            std::fs::write(folder.path().join("policy.toml"), policy).expect("a policy file");
            config.push_str("policy = \"policy.toml\"\n");
        }
        for (i, replica) in replicas.iter().enumerate() {
            let url = replica.addr();
            write!(
                config,
                "[[replicas]]\nname = \"replica-{i}\"\nurl = \"http://{url}\"\n"
            )
            .expect("text grows");
        }
        let file = folder.path().join("gateway.toml");
        std::fs::write(&file, config).expect("a configuration file");
        let process = Running::start(
            Command::new(assets::binary("gateway"))
                .args(["serve", "--config"])
                .arg(&file),
        );
        Front {
            process,
            listen,
            admin,
            _folder: folder,
        }
    }

    /// Waits until `count` replicas are ready.
    ///
    /// # Panics
    /// When they are not in time.
    pub async fn wait_for_ready(&mut self, count: usize) {
        let until = Instant::now() + Duration::from_secs(SEEN_SECONDS_MAX);
        while self.ready().await != Some(count) {
            assert!(
                !self.process.is_over() && Instant::now() < until,
                "{count} replicas are not ready:\n{}",
                self.process.log()
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn ready(&self) -> Option<usize> {
        // Before the first answer of the admin address there is nothing to count.
        http::get(self.admin, "/livez").await.ok()?;
        let metrics = fleet::text(self.admin, "/metrics").await;
        Some(prom::sum(&metrics, "gateway_replica_ready", &[]) as usize)
    }

    /// The gateway's resident memory in bytes.
    ///
    /// # Panics
    /// When it has ended.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.pid()))
            .expect("a living process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
        kib.expect("a size in KiB") * 1_024
    }
}
