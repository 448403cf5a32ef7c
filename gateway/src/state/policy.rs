//! The routing policy in use, and how a new one takes its place: whole, or not at all.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use chat_wire::JsonPath;
use routing_policies::Policy;
use routing_policies::lanes::Rule;
use serde::Serialize;
use tokio::sync::Notify;

use super::families::{ModelFacts, ModelTable};
use crate::chat::prompt::paths;
use crate::config::ReplicaConfig;

/// What stands in place of a file's name where there is none.
const BUILT_IN: &str = "built in";

/// A policy and where it came from, with what the path of a request needs made ready once. A request keeps the one that it began with.
#[derive(Debug)]
pub struct PolicyInUse {
    policy: Policy,
    body_paths: Vec<JsonPath>,
    models: ModelTable,
    source: String,
    version: u64,
    loaded_at: SystemTime,
    /// A rule that could not be worked out is logged once, not with every request.
    rule_error_told: AtomicBool,
}

impl PolicyInUse {
    /// The policy of a file for a gateway that has these replicas, or the one built in.
    ///
    /// # Errors
    /// The file cannot be read or has problems (a pool that names a replica which is not configured is one): all of them, with their
    /// places.
    pub fn load(file: Option<&Path>, replicas: &[ReplicaConfig]) -> Result<Self, String> {
        let fleet: Vec<&str> = replicas.iter().map(|r| r.name.as_str()).collect();
        let Some(file) = file else {
            let text = routing_policies::DEFAULT_POLICY;
            return Self::new(&fleet, replicas, BUILT_IN.into(), text);
        };
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("{name}: cannot be read: {error}"))?;
        Self::new(&fleet, replicas, name, &text)
    }

    fn new(
        fleet: &[&str],
        replicas: &[ReplicaConfig],
        source: String,
        text: &str,
    ) -> Result<Self, String> {
        let policy = routing_policies::compile_for(fleet, &source, text)
            .map_err(|problems| routing_policies::report(&problems))?;
        let body_paths = paths(&policy)
            .map_err(|(path, error)| format!("{source}: session.body: `{path}`: {error}"))?;
        Ok(Self {
            models: ModelTable::new(&source, text, &policy, replicas)?,
            policy,
            body_paths,
            source,
            version: routing_policies::fingerprint(text),
            loaded_at: SystemTime::now(),
            rule_error_told: AtomicBool::new(false),
        })
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The body fields that may name a session, in the policy's order, and those that say what the prompt's head is.
    #[must_use]
    pub fn body_paths(&self) -> &[JsonPath] {
        &self.body_paths
    }

    /// What is known of replicas' models by their chat templates.
    #[must_use]
    pub fn models(&self) -> &ModelTable {
        &self.models
    }

    /// What is known of a model's reasoning.
    #[must_use]
    pub fn model(&self, model: &str) -> Arc<ModelFacts> {
        self.models.of(&self.policy, model)
    }

    /// A rule could not be worked out for a request.
    pub fn on_rule_error(&self, rule: &Rule) {
        if !self.rule_error_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                rule = rule.name,
                when = rule.when.source(),
                "a rule cannot be worked out for a request and counts as one that does not hold; told once a policy, counted each time"
            );
        }
    }

    /// The file that it was read from, or `built in`.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// A hash of its text.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.version
    }

    /// A hash of the file's text, in 16 hexadecimal digits: the same on every gateway that runs the same.
    #[must_use]
    pub fn version(&self) -> String {
        format!("{:016x}", self.version)
    }
}

/// Holds the policy in use and swaps it for what its file says now.
#[derive(Debug)]
pub struct PolicyStore {
    file: Option<PathBuf>,
    replicas: Vec<ReplicaConfig>,
    current: ArcSwap<PolicyInUse>,
    /// Why the last reload left the policy as it was; `None` once one has worked.
    last_error: Mutex<Option<String>>,
    forgotten: AtomicUsize,
    asked: Notify,
}

/// The policy as `/state` shows it.
#[derive(Debug, Serialize)]
pub struct PolicyState {
    /// The file, or `built in`.
    file: String,
    /// A hash of its text.
    version: String,
    /// When it was read, in seconds since 1970.
    loaded_at_unix_seconds: u64,
    /// What is wrong with the file as it stands now, where the gateway did not take it.
    last_error: Option<String>,
    /// Pins of named sessions that the last change of policy forgot, by their age, for want of room or since no lane leads to their
    /// replica. Sessions that it names otherwise
    /// than before are not among them: the gateway cannot know those.
    pins_forgotten: usize,
}

impl PolicyStore {
    /// The policy of a file, or the one built in.
    ///
    /// # Errors
    /// As [`PolicyInUse::load`].
    pub fn load(file: Option<&Path>, replicas: &[ReplicaConfig]) -> Result<Self, String> {
        Ok(Self {
            current: ArcSwap::from_pointee(PolicyInUse::load(file, replicas)?),
            replicas: replicas.to_vec(),
            file: file.map(Path::to_owned),
            last_error: Mutex::default(),
            forgotten: AtomicUsize::new(0),
            asked: Notify::new(),
        })
    }

    /// The policy in use now. A request asks once and keeps what it got.
    #[must_use]
    pub fn current(&self) -> Arc<PolicyInUse> {
        self.current.load_full()
    }

    /// The file; `None` where the built-in policy runs, which never changes.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Reads the file again: the new policy takes the place of the old one whole, or the old one stays.
    ///
    /// # Errors
    /// As [`PolicyInUse::load`]; also kept for [`PolicyStore::describe`].
    pub fn reload(&self) -> Result<Arc<PolicyInUse>, String> {
        let loaded = PolicyInUse::load(self.file(), &self.replicas);
        let mut last_error = self
            .last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match loaded {
            Ok(policy) => {
                let policy = Arc::new(policy);
                self.current.store(policy.clone());
                *last_error = None;
                Ok(policy)
            }
            Err(why) => {
                *last_error = Some(why.clone());
                Err(why)
            }
        }
    }

    /// Keeps for [`PolicyStore::describe`] how many pins the policy in use forgot as it came.
    pub fn note_forgotten(&self, pins: usize) {
        self.forgotten.store(pins, Ordering::Relaxed);
    }

    /// Has the watching task read the file again, changed or not.
    pub fn ask(&self) {
        self.asked.notify_one();
    }

    /// Resolves when [`PolicyStore::ask`] was called.
    pub async fn asked(&self) {
        self.asked.notified().await;
    }

    /// What `/state` shows.
    #[must_use]
    pub fn describe(&self) -> PolicyState {
        let current = self.current();
        let last_error = self
            .last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        PolicyState {
            file: current.source().to_owned(),
            version: current.version(),
            loaded_at_unix_seconds: current
                .loaded_at
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
            last_error: last_error.clone(),
            pins_forgotten: self.forgotten.load(Ordering::Relaxed),
        }
    }
}
