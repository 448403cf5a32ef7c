//! The routing policy in use, with what the path of a request needs made ready once.

use std::path::Path;

use chat_wire::JsonPath;
use routing_policies::Policy;

/// A policy and where it came from.
#[derive(Debug)]
pub struct PolicyInUse {
    policy: Policy,
    body_paths: Vec<JsonPath>,
    source: String,
}

impl PolicyInUse {
    /// The policy of a file, or the one built in.
    ///
    /// # Errors
    /// The file cannot be read or has problems: all of them, with their places.
    pub fn load(file: Option<&Path>) -> Result<Self, String> {
        let Some(file) = file else {
            return Self::new(Policy::default(), "built in".into());
        };
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("{name}: cannot be read: {error}"))?;
        let policy = routing_policies::compile(&name, &text)
            .map_err(|problems| routing_policies::report(&problems))?;
        Self::new(policy, name)
    }

    fn new(policy: Policy, source: String) -> Result<Self, String> {
        let path = |text: &String| {
            JsonPath::parse(text)
                .map_err(|error| format!("{source}: session.body: `{text}`: {error}"))
        };
        let body_paths = policy
            .session
            .body
            .iter()
            .map(path)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            policy,
            body_paths,
            source,
        })
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The body fields that may name a session, in the policy's order.
    #[must_use]
    pub fn body_paths(&self) -> &[JsonPath] {
        &self.body_paths
    }

    /// The file that it was read from, or `built in`.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }
}
