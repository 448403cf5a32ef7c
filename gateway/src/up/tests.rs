use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use tokio::sync::mpsc;

use super::child::Plan;
use super::supervise::supervise;
use crate::config::ReplicaConfig;
use crate::metrics::Metrics;
use crate::serve::drain::Tasks;
use crate::state::beliefs::Beliefs;
use crate::state::replicas::{Fleet, Told};

#[tokio::test]
async fn a_replica_that_dies_after_it_was_ready_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let (binary, starts) = (folder.path().join("replica"), folder.path().join("starts"));
    // Long enough to be seen ready, and then gone.
    let text = format!(
        "#!/bin/sh\necho start >> {}\nsleep 0.2\nexit 7\n",
        starts.display()
    );
    std::fs::write(&binary, text).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let config = ReplicaConfig::new("r".into(), "127.0.0.1:1".parse().unwrap());
    let fleet = Fleet::new(&[config], &Metrics::new(), &Beliefs::new(1).into());
    let replica = fleet.replicas()[0].clone();
    replica.on_probe_ok(Told {
        instance: Some("first"),
        cache_tokens: 0,
    });
    let plan = Plan {
        name: "r".into(),
        binary,
        model: folder.path().to_owned(),
        address: "127.0.0.1:1".parse().unwrap(),
        more: Vec::new(),
        restart_wait: Duration::from_millis(100),
    };
    let (tasks, waiter) = Tasks::new();
    let (report, mut deaths) = mpsc::channel(1);
    tasks.spawn(supervise(plan, replica.clone(), tasks.stop(), report));
    drop(tasks);
    let count = || {
        std::fs::read_to_string(&starts)
            .unwrap_or_default()
            .lines()
            .count()
    };
    let limit = tokio::time::Instant::now() + Duration::from_secs(20);
    while count() < 2 && tokio::time::Instant::now() < limit {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(count(), 2);
    // Its death was noticed without any probe, and is no reason to take the rest down.
    assert!(!replica.is_ready());
    assert!(waiter.stop_and_wait(Duration::from_secs(5)).await);
    assert!(deaths.recv().await.is_none());
}
