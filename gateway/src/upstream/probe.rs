//! Asks every replica how it is, again and again, and what it serves.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::client::{Client, ProbeError};
use crate::serve::drain::Tasks;
use crate::state::Known;
use crate::state::models;
use crate::state::replicas::{Fleet, Replica};

/// Between two probes of a replica that is ready.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Between two probes of one that is not: a start is seen soon.
const PROBE_EVERY_UNREADY: Duration = Duration::from_millis(200);
/// A probe without an answer for longer has failed. A replica answers `/health` beside its engine's work.
const PROBE_LIMIT: Duration = Duration::from_secs(2);
/// Model lists change seldom: asked for on the first good probe, after a restart, and every so many probes.
const PROBES_PER_MODEL_LIST: u32 = 30;

/// Starts one probing task per replica.
pub fn start(tasks: &Tasks, known: &Arc<Known>, client: &Arc<Client>) {
    for replica in known.fleet.replicas() {
        let mut stop = tasks.stop();
        let (known, client, replica) = (known.clone(), client.clone(), replica.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = stop.wait() => {}
                () = probe_forever(&known.fleet, &client, &replica) => {}
            }
        });
    }
}

async fn probe_forever(fleet: &Fleet, client: &Client, replica: &Replica) {
    let mut ticks = interval(PROBE_EVERY_UNREADY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut until_models = 0_u32;
    loop {
        ticks.tick().await;
        let before = replica.instance();
        probe(client, replica).await;
        replica.pool().sweep();
        if !replica.is_ready() {
            until_models = 0;
            continue;
        }
        if replica.instance() != before {
            until_models = 0;
        }
        if until_models == 0 {
            until_models = PROBES_PER_MODEL_LIST;
            if let Err(why) = ask_models(fleet, client, replica).await {
                until_models = 1;
                tracing::debug!(
                    replica = &**replica.name(),
                    why,
                    "the replica did not list its models"
                );
            }
        }
        until_models -= 1;
        ticks.reset_after(PROBE_EVERY);
    }
}

/// One probe, reported to the replica's health.
async fn probe(client: &Client, replica: &Replica) {
    match client.probe(replica, "/health", PROBE_LIMIT).await {
        Ok((status, body)) if status.is_success() => {
            replica.on_probe_ok(instance_of(&body).as_deref());
        }
        Ok((status, _)) => replica.on_probe_failed(&format!("/health answers {status}")),
        Err(ProbeError::Unreachable(why)) => replica.on_unreachable(&why),
        Err(ProbeError::Failed(why)) => replica.on_probe_failed(&why),
    }
}

async fn ask_models(fleet: &Fleet, client: &Client, replica: &Replica) -> Result<(), String> {
    let answer = client.probe(replica, "/v1/models", PROBE_LIMIT).await;
    let (status, body) = answer.map_err(|error| error.to_string())?;
    if !status.is_success() {
        return Err(format!("/v1/models answers {status}"));
    }
    fleet.on_models(replica, models::parse(&body)?);
    Ok(())
}

/// The `instance` of a health answer, which names the process. Other engines have none.
fn instance_of(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Answer {
        instance: Option<String>,
    }
    serde_json::from_slice::<Answer>(body).ok()?.instance
}
