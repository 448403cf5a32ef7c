//! Keeps one replica running: a death at the first start takes the whole system down, a later one is healed.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::child::{Plan, Process};
use crate::serve::drain::Stop;
use crate::state::replicas::Replica;

/// The longest wait between two starts.
const RESTART_WAIT_MAX: Duration = Duration::from_secs(30);
/// A replica that lived this long was well: the next wait is the shortest again.
const WELL_AFTER: Duration = Duration::from_secs(60);
/// Between two looks at whether the replica has become ready.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How one life of a process ended.
enum End {
    /// The system is going down.
    Stopped,
    /// It ended by itself; in words, with its last lines.
    Died(String),
}

/// Runs a replica until the system stops. Reports its death in `deaths` if it was never ready.
pub(super) async fn supervise(
    plan: Plan,
    replica: Arc<Replica>,
    mut stop: Stop,
    deaths: mpsc::Sender<String>,
) {
    let mut was_ready = false;
    let mut wait = plan.restart_wait;
    loop {
        let started = Instant::now();
        let end = live(&plan, &replica, &mut stop, &mut was_ready).await;
        let End::Died(words) = end else { return };
        replica.on_unreachable("its process ended");
        if !was_ready {
            // Nobody else reads this channel's one place: a second death adds nothing.
            let _ = deaths.try_send(words);
            return;
        }
        if started.elapsed() > WELL_AFTER {
            wait = plan.restart_wait;
        }
        tracing::error!(restart_in_seconds = wait.as_secs(), "{words}");
        tokio::select! {
            () = stop.wait() => return,
            () = sleep(wait) => {}
        }
        wait = RESTART_WAIT_MAX.min(wait * 2);
    }
}

/// One life of the process, from its start to its end.
async fn live(plan: &Plan, replica: &Replica, stop: &mut Stop, was_ready: &mut bool) -> End {
    let (mut process, output) = match plan.start() {
        Ok(started) => started,
        Err(error) => {
            let binary = plan.binary.display();
            return End::Died(format!(
                "{} could not be started: {binary}: {error}",
                plan.name
            ));
        }
    };
    let mut output = pin!(output);
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut output_open = true;
    let status = loop {
        tokio::select! {
            () = stop.wait() => {
                end_with_output(process, output).await;
                return End::Stopped;
            }
            status = process.ended() => break status,
            () = output.as_mut(), if output_open => output_open = false,
            _ = looks.tick(), if !*was_ready => *was_ready = replica.is_ready(),
        }
    };
    if output_open {
        // What it printed last is still in the pipe. A grandchild may hold the pipe open, hence the limit.
        let _ = tokio::time::timeout(Duration::from_secs(1), output).await;
    }
    let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    let when = if *was_ready {
        ""
    } else {
        " before it was ready"
    };
    let last = process.last.words();
    End::Died(format!(
        "{} ended{when} ({how}); its last words:\n{last}",
        plan.name
    ))
}

/// Ends the process while its output is still passed on, so that it cannot block on a full pipe.
async fn end_with_output(process: Process, output: impl Future<Output = ()>) {
    tokio::select! {
        () = process.terminate() => {}
        () = async { output.await; std::future::pending::<()>().await } => {}
    }
}
