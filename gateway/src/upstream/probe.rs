//! Asks every replica how it is, again and again, and what it serves.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::cache_size::{CacheSize, cache_size};
use super::client::{Client, ProbeError};
use crate::serve::drain::Tasks;
use crate::state::Known;
use crate::state::models;
use crate::state::replicas::{Fleet, Replica, Told};

/// Between two probes of a replica that is ready.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Between two probes of one that is not: a start is seen soon.
const PROBE_EVERY_UNREADY: Duration = Duration::from_millis(200);
/// A probe without an answer for longer has failed. A replica answers `/health` beside its engine's work.
const PROBE_LIMIT: Duration = Duration::from_secs(2);
/// Model lists change seldom: asked for on the first good probe, after a restart, and every so many probes.
const PROBES_PER_MODEL_LIST: u32 = 30;
/// Probes between two looks for the size of a cache that could not be read: 1 at first, twice as many each time, at most so many.
const PROBES_PER_LOOK_MAX: u32 = 64;

/// Starts one probing task per replica.
pub fn start(tasks: &Tasks, known: &Arc<Known>, client: &Arc<Client>) {
    for replica in known.fleet.replicas() {
        let mut stop = tasks.stop();
        let (known, client, replica) = (known.clone(), client.clone(), replica.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = stop.wait() => {}
                () = probe_forever(&known, &client, &replica) => {}
            }
        });
    }
}

async fn probe_forever(known: &Known, client: &Client, replica: &Replica) {
    let mut ticks = interval(PROBE_EVERY_UNREADY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut until_models = 0_u32;
    let mut room = Room::Unasked;
    loop {
        ticks.tick().await;
        let before = replica.instance();
        probe(known, client, replica, &mut room).await;
        replica.pool().sweep();
        if !replica.is_ready() {
            (until_models, room) = (0, Room::Unasked);
            continue;
        }
        if replica.instance() != before {
            until_models = 0;
        }
        room = match room {
            Room::Due { tries } => ask_room(client, replica, tries).await,
            Room::Later { probes: 1, tries } => Room::Due { tries },
            Room::Later { probes, tries } => Room::Later {
                probes: probes - 1,
                tries,
            },
            told => told,
        };
        if until_models == 0 {
            until_models = PROBES_PER_MODEL_LIST;
            if let Err(why) = ask_models(&known.fleet, client, replica).await {
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

/// What a replica has told of its cache beside `/health`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Its health was not seen since it started.
    Unasked,
    /// Its health says nothing of it, and it is to be asked otherwise, which has failed so many times.
    Due { tries: u32 },
    /// It is to be asked again after so many probes, at least one.
    Later { probes: u32, tries: u32 },
    /// It was asked, and told so many tokens or nothing; it is not asked again before it starts anew.
    Asked(Option<u64>),
}

/// One probe, reported to the replica's health.
async fn probe(known: &Known, client: &Client, replica: &Replica, room: &mut Room) {
    match client.probe(replica, "/health", PROBE_LIMIT).await {
        Ok((status, body)) if status.is_success() => {
            let health = ReplicaHealth::read(&body);
            let another = health.instance != replica.instance();
            if health.cache_tokens().is_none() && (another || *room == Room::Unasked) {
                *room = Room::Due { tries: 0 };
            }
            let measured = match *room {
                Room::Asked(tokens) => tokens,
                _ => None,
            };
            replica.on_probe_ok(Told {
                instance: health.instance.as_deref(),
                cache_tokens: health.cache_tokens().or(measured).unwrap_or_else(|| {
                    u64::from(known.policy.current().policy().prefix.cache_tokens)
                }),
            });
        }
        Ok((status, _)) => replica.on_probe_failed(&format!("/health answers {status}")),
        Err(ProbeError::Unreachable(why)) => replica.on_unreachable(&why),
        Err(ProbeError::Failed(why)) => replica.on_probe_failed(&why),
    }
}

/// Looks for the size of the cache in the replica's metrics. The next probe passes it on. A look that fails is made again later; until
/// then the policy's size stands in.
async fn ask_room(client: &Client, replica: &Replica, tries: u32) -> Room {
    let answer = client.probe(replica, "/metrics", PROBE_LIMIT).await;
    let size = match &answer {
        Ok((status, body)) if status.is_success() => cache_size(&String::from_utf8_lossy(body)),
        // It has no such page.
        Ok((status, _)) if status.is_client_error() => CacheSize::Nothing,
        _ => CacheSize::NotYet,
    };
    let name = &**replica.name();
    match size {
        CacheSize::Tokens(tokens) => {
            tracing::info!(
                replica = name,
                tokens,
                "the replica's metrics tell the size of its prefix cache"
            );
            Room::Asked(Some(tokens))
        }
        CacheSize::Nothing => {
            tracing::info!(
                replica = name,
                "the replica does not tell the size of its prefix cache: the policy's `prefix.cache_tokens` stands in"
            );
            Room::Asked(None)
        }
        CacheSize::NotYet => {
            if tries == 0 {
                tracing::info!(
                    replica = name,
                    "the size of the replica's prefix cache cannot be read yet: the policy's `prefix.cache_tokens` stands in until it can"
                );
            }
            let probes = PROBES_PER_LOOK_MAX.min(1_u32.checked_shl(tries).unwrap_or(u32::MAX));
            let tries = tries.saturating_add(1);
            Room::Later { probes, tries }
        }
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

/// What a health answer says beyond its status. Other engines say none of it.
#[derive(Debug, Default, serde::Deserialize)]
struct ReplicaHealth {
    /// Names the process.
    instance: Option<String>,
    kv_blocks: Option<u64>,
    block_tokens: Option<u64>,
    prefix_cache: Option<bool>,
}

impl ReplicaHealth {
    fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// Tokens that the replica's cache holds; none of one that reuses nothing.
    fn cache_tokens(&self) -> Option<u64> {
        if self.prefix_cache == Some(false) {
            return Some(0);
        }
        Some(self.kv_blocks?.saturating_mul(self.block_tokens?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, instance: Option<&str>, cache_tokens: Option<u64>) {
        let health = ReplicaHealth::read(body.as_bytes());
        assert_eq!(health.instance.as_deref(), instance);
        assert_eq!(health.cache_tokens(), cache_tokens);
    }

    #[test]
    fn a_replica_tells_its_process_and_its_room() {
        check("", None, None);
        check(r#"{"instance":"a","status":"ok"}"#, Some("a"), None);
        let whole = r#"{"instance":"a","kv_blocks":64,"block_tokens":16,"prefix_cache":true}"#;
        check(whole, Some("a"), Some(1_024));
        let off = r#"{"kv_blocks":64,"block_tokens":16,"prefix_cache":false}"#;
        check(off, None, Some(0));
        let much = r#"{"kv_blocks":18446744073709551615,"block_tokens":16}"#;
        check(much, None, Some(u64::MAX));
    }
}
