//! What a policy and the table of families say of each model, looked up once a name.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use chat_wire::families::{Families, Family};
use routing_policies::Policy;
use routing_policies::models::ModelRule;

use crate::config::ReplicaConfig;

/// Most model names that are kept. Clients choose names; one past the bound is looked up each time.
const NAMES_MAX: usize = 1024;

/// What is known of one model's reasoning.
#[derive(Debug, Default)]
pub struct ModelFacts {
    /// What the policy says of it.
    pub rule: Option<ModelRule>,
    /// The family that the policy names.
    pub told: Option<Arc<Family>>,
    /// The family by the model's own name.
    pub by_name: Option<Arc<Family>>,
}

/// The families of a policy, and what is known of the models asked for so far.
#[derive(Debug)]
pub struct ModelTable {
    families: Families,
    /// The family of each replica's chat template, where it is known.
    templates: Vec<Option<Arc<Family>>>,
    known: RwLock<HashMap<Box<str>, Arc<ModelFacts>>>,
}

impl ModelTable {
    /// The table of the policy that `text` says.
    ///
    /// # Errors
    /// In words: families of the file that are wrong, and models of families that there are not.
    pub fn new(
        source: &str,
        text: &str,
        policy: &Policy,
        replicas: &[ReplicaConfig],
    ) -> Result<Self, String> {
        let families =
            Families::with_policy(text).map_err(|error| format!("{source}: families: {error}"))?;
        let named = policy.models.rules.iter().enumerate();
        let wrong: Vec<String> = named
            .filter_map(|(at, rule)| {
                let error = families.named(rule.family.as_deref()?).err()?;
                Some(format!("{source}: `models[{at}].family`: {error}"))
            })
            .collect();
        let template = |replica: &ReplicaConfig| {
            let family = families.of_template(replica.template.as_deref()?)?;
            Some(Arc::new(family.clone()))
        };
        if wrong.is_empty() {
            Ok(Self {
                templates: replicas.iter().map(template).collect(),
                families,
                known: RwLock::default(),
            })
        } else {
            Err(wrong.join("\n"))
        }
    }

    /// The family of a replica by its chat template, where that is known.
    #[must_use]
    pub fn at(&self, replica: usize) -> Option<&Arc<Family>> {
        self.templates.get(replica)?.as_ref()
    }

    /// What is known of a model, by its name as the client wrote it.
    #[must_use]
    pub fn of(&self, policy: &Policy, model: &str) -> Arc<ModelFacts> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(facts) = known.get(model) {
            return facts.clone();
        }
        drop(known);
        let rule = policy.models.of(model).cloned();
        let told = rule.as_ref().and_then(|rule| rule.family.as_deref());
        let told = told.and_then(|name| self.families.named(name).ok());
        let share = |family: &Family| Arc::new(family.clone());
        let facts = Arc::new(ModelFacts {
            told: told.map(share),
            by_name: self.families.of_model(model).map(share),
            rule,
        });
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < NAMES_MAX {
            known.insert(model.into(), facts.clone());
        }
        facts
    }
}
