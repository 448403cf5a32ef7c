//! `gateway up` with replicas that are shell scripts: how it starts, what it says when one dies, how it ends.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway::cli::Up;
use gateway::up::run;

fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("engine-replica");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn options(folder: &Path, replica_bin: Option<PathBuf>) -> Up {
    let any = "127.0.0.1:0".parse().unwrap();
    Up {
        model: folder.to_owned(),
        replicas: 2,
        listen: any,
        admin_listen: any,
        policy: None,
        no_sample: true,
        replica_bin,
        restart_seconds: 1,
        replica_args: vec!["--more".into()],
    }
}

async fn never() {
    std::future::pending().await
}

#[tokio::test]
async fn a_replica_that_dies_at_its_start_takes_all_down_with_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let alive = folder.path().join("alive");
    // One of the two stays alive until it is told to end.
    let text = format!(
        "case \"$*\" in *replica-0*) echo \"$*\"; echo 'cannot load: bad magic' >&2; exit 3;; esac\n\
         trap 'rm -f {0}; exit 0' TERM; touch {0}; while :; do sleep 0.05; done",
        alive.display()
    );
    let bin = script(folder.path(), &text);
    let error = run(options(folder.path(), Some(bin)), never())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("replica-0 ended before it was ready (exit status: 3)"),
        "{error}"
    );
    assert!(error.contains("cannot load: bad magic"), "{error}");
    let model = folder.path().display();
    assert!(
        error.contains(&format!("serve --model {model} --listen 127.0.0.1:")),
        "{error}"
    );
    assert!(
        error.contains("--name replica-0 --exit-with-parent --more"),
        "{error}"
    );
    assert!(!alive.exists(), "the other replica was not told to end");
}

#[tokio::test]
async fn a_shutdown_ends_replicas_that_were_never_ready() {
    let folder = tempfile::tempdir().unwrap();
    let bin = script(
        folder.path(),
        "trap 'exit 0' TERM; while :; do sleep 0.05; done",
    );
    let shutdown = tokio::time::sleep(Duration::from_millis(300));
    run(options(folder.path(), Some(bin)), shutdown)
        .await
        .unwrap();
}

#[tokio::test]
async fn what_is_missing_is_said_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let check = async |options: Up, words: &str| {
        let error = run(options, never()).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let none = folder.path().join("none");
    check(options(folder.path(), Some(none.clone())), "--replica-bin").await;
    check(
        options(folder.path(), None),
        "build it with `cargo build --release -p engine-replica`",
    )
    .await;
    let bin = script(folder.path(), "exit 0");
    check(options(&none, Some(bin.clone())), "no such file or folder").await;
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut clash = options(folder.path(), Some(bin));
    clash.listen = taken.local_addr().unwrap();
    check(clash, "`listen` cannot bind").await;
}
