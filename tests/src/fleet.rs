//! The built binaries as processes: `gateway up` with its replicas, or one replica alone.

use std::{
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::{assets, http};

/// Longest that a fleet may take to answer, in seconds; loading takes about one.
pub const START_SECONDS_MAX: u64 = 90;

/// A running process with what it printed.
#[derive(Debug)]
pub struct Running {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Running {
    /// Starts `command` and collects both its outputs.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let log = Arc::new(Mutex::new(String::new()));
        collect(child.stdout.take().expect("piped"), &log);
        collect(child.stderr.take().expect("piped"), &log);
        Running { child, log }
    }

    /// What it printed so far.
    ///
    /// # Panics
    /// When a collecting thread panicked.
    pub fn log(&self) -> String {
        self.log.lock().expect("collectors do not panic").clone()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        signal_pid(self.pid(), signal);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end within `limit`.
    pub async fn ended(&mut self, limit: Duration) -> ExitStatus {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                return status;
            }
            assert!(
                Instant::now() < until,
                "still running after {limit:?}; it said:\n{}",
                self.log()
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("our own child").is_some()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln_log(&self.log());
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "a failing test shows what the process said"
)]
fn eprintln_log(log: &str) {
    eprintln!("---- the process said ----\n{log}");
}

fn collect(pipe: impl Read + Send + 'static, log: &Arc<Mutex<String>>) {
    let log = Arc::clone(log);
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut log = log.lock().expect("collectors do not panic");
            log.push_str(&line);
            log.push('\n');
        }
    });
}

/// Sends a signal to a process; one that is gone already is no fault.
pub fn signal_pid(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// An address on loopback that nothing listens on just now.
///
/// # Panics
/// When loopback has no free port.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("a free loopback port")
}

/// `gateway up` and all that it started.
#[derive(Debug)]
pub struct Fleet {
    /// The gateway's process.
    pub gateway: Running,
    /// Where clients talk.
    pub listen: SocketAddr,
    /// Where operators look.
    pub admin: SocketAddr,
}

/// A replica process as its command line tells.
#[derive(Clone, Debug)]
pub struct ReplicaProcess {
    /// Its `--name`.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// Its `--listen` address.
    pub listen: SocketAddr,
}

impl Fleet {
    /// Starts the gateway with `replicas` replicas of `model` and waits until all are ready.
    ///
    /// # Panics
    /// When they are not ready in time.
    pub async fn up(model: &Path, replicas: usize) -> Self {
        let (listen, admin) = (free_address(), free_address());
        let gateway = Running::start(
            Command::new(assets::binary("gateway"))
                .arg("up")
                .arg("--model")
                .arg(model)
                .args(["--replicas", &replicas.to_string()])
                // A replica that a test kills stays dead for the rest of that test.
                .args(["--restart-seconds", "30"])
                // Tests count requests.
                .arg("--no-sample")
                .args([
                    "--listen",
                    &listen.to_string(),
                    "--admin-listen",
                    &admin.to_string(),
                ]),
        );
        let mut fleet = Fleet {
            gateway,
            listen,
            admin,
        };
        let until = Instant::now() + Duration::from_secs(START_SECONDS_MAX);
        while !fleet.is_ready().await {
            assert!(
                !fleet.gateway.is_over(),
                "gateway ended:\n{}",
                fleet.gateway.log()
            );
            assert!(
                Instant::now() < until,
                "not ready in time:\n{}",
                fleet.gateway.log()
            );
            sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(fleet.replicas().len(), replicas);
        fleet
    }

    async fn is_ready(&self) -> bool {
        http::get(self.admin, "/readyz")
            .await
            .is_ok_and(|r| r.status.is_success())
    }

    /// The gateway's metrics.
    ///
    /// # Panics
    /// When the admin listener does not answer.
    pub async fn metrics(&self) -> String {
        text(self.admin, "/metrics").await
    }

    /// The replica processes that live now, by name.
    pub fn replicas(&self) -> Vec<ReplicaProcess> {
        let mut found: Vec<_> = children(self.gateway.pid()).filter_map(replica).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// The living replica called `name`.
    ///
    /// # Panics
    /// When there is none.
    pub fn replica(&self, name: &str) -> ReplicaProcess {
        self.replicas()
            .into_iter()
            .find(|r| r.name == name)
            .unwrap_or_else(|| panic!("no replica `{name}`; there are {:?}", self.replicas()))
    }
}

/// The body at `path`, as text.
///
/// # Panics
/// When it is not answered with 200.
pub async fn text(addr: SocketAddr, path: &str) -> String {
    let reply = http::get(addr, path)
        .await
        .unwrap_or_else(|e| panic!("{path}: {e}"));
    assert_eq!(reply.status, 200, "{path}");
    String::from_utf8_lossy(&reply.body).into_owned()
}

fn children(parent: u32) -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(move |entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let ppid: u32 = stat
                .rsplit_once(')')?
                .1
                .split_ascii_whitespace()
                .nth(1)?
                .parse()
                .ok()?;
            (ppid == parent).then_some(pid)
        })
}

fn replica(pid: u32) -> Option<ReplicaProcess> {
    let raw = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    let args: Vec<&str> = raw.split('\0').collect();
    let after = |flag: &str| {
        let at = args.iter().position(|a| *a == flag)?;
        args.get(at + 1).copied()
    };
    Some(ReplicaProcess {
        name: after("--name")?.to_owned(),
        pid,
        listen: after("--listen")?.parse().ok()?,
    })
}

/// One `engine-replica serve` with extra flags, ready to answer.
///
/// # Panics
/// When it is not ready in time.
pub async fn lone_replica(model: &Path, flags: &[&str]) -> (Running, SocketAddr) {
    let listen = free_address();
    let mut process = Running::start(
        Command::new(assets::binary("engine-replica"))
            .arg("serve")
            .arg("--model")
            .arg(model)
            .args(["--listen", &listen.to_string()])
            .args(flags),
    );
    let until = Instant::now() + Duration::from_secs(START_SECONDS_MAX);
    while !http::get(listen, "/health")
        .await
        .is_ok_and(|r| r.status.is_success())
    {
        assert!(!process.is_over(), "replica ended:\n{}", process.log());
        assert!(
            Instant::now() < until,
            "not ready in time:\n{}",
            process.log()
        );
        sleep(Duration::from_millis(50)).await;
    }
    (process, listen)
}
