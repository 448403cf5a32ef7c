//! What becomes of a request's reasoning: which family its model is of, whether thinking is on, and what the client is shown.

use std::sync::Arc;

use chat_wire::chunk::UsageScan;
use chat_wire::families::{Family, Grammar};
use chat_wire::reshape::{FieldName, Plan, Reshaper, Shown};
use chat_wire::scan::ThinkingScan;
use routing_policies::models::{Reasoning, ReasoningField};

use super::parse::ChatCall;
use crate::metrics::SplitBy;
use crate::state::families::ModelFacts;
use crate::state::replicas::Replica;

/// What a request and its policy say of reasoning.
#[derive(Debug)]
pub struct Asked {
    facts: Arc<ModelFacts>,
    thinking: ThinkingScan,
    shown: Shown,
    field: FieldName,
}

impl Asked {
    /// Of a request.
    pub(super) fn of(call: &mut ChatCall) -> Self {
        let model = call.scan.model.as_deref().unwrap_or_default();
        let facts = call.policy.model(model);
        let rule = facts.rule.as_ref();
        let thinking = std::mem::take(&mut call.scan.thinking);
        let shown = match rule.map(|rule| rule.reasoning) {
            None | Some(Reasoning::Field) if thinking.excluded => Shown::Hidden,
            None | Some(Reasoning::Field) => Shown::Field,
            Some(Reasoning::Hidden) => Shown::Hidden,
            Some(Reasoning::Summary) => Shown::Summary,
        };
        let field = match rule.map(|rule| rule.field).unwrap_or_default() {
            ReasoningField::ReasoningContent => FieldName::ReasoningContent,
            ReasoningField::Reasoning => FieldName::Reasoning,
            ReasoningField::Both => FieldName::Both,
        };
        Self {
            facts,
            thinking,
            shown,
            field,
        }
    }

    /// The family at this replica: the policy's word, else the name's.
    fn family(&self, _: &Replica) -> Option<&Arc<Family>> {
        self.facts.told.as_ref().or(self.facts.by_name.as_ref())
    }

    /// How an answer of this replica is reshaped; `None` where it passes as it is, because nobody knows the model. That is counted.
    pub(super) fn plan(&self, replica: &Replica) -> Option<Plan> {
        let family = self.family(replica);
        if family.is_none() {
            replica.metrics().split(SplitBy::UnknownFamily);
        }
        if family.is_none() && self.facts.rule.is_none() && self.shown == Shown::Field {
            return None;
        }
        let as_written = self.thinking.inline && self.shown == Shown::Field;
        let grammar = match family {
            Some(family) if !as_written => family.grammar.clone(),
            _ => Grammar::None,
        };
        let wish = family.and_then(|family| family.switch.wish(&self.thinking));
        let rule = self.facts.rule.as_ref();
        Some(Plan {
            grammar,
            thinking: wish
                .map(|(thinking, _)| thinking)
                .or(rule.and_then(|rule| rule.thinking)),
            engine_splits: replica.splits_reasoning(),
            shown: self.shown,
            field: self.field,
        })
    }
}

/// Notes at the end of an answer who split it, and how many tokens of reasoning it had.
pub(super) fn note(replica: &Replica, reshaper: &Reshaper, usage: Option<&UsageScan>) {
    let metrics = replica.metrics();
    if reshaper.engine_split() {
        replica.on_split_by_itself();
        metrics.split(SplitBy::Replica);
    } else if reshaper.gateway_split() {
        metrics.split(SplitBy::Gateway);
    }
    if reshaper.has_unread() {
        metrics.split(SplitBy::Unread);
    }
    if let Some(tokens) = usage.and_then(|usage| usage.reasoning_tokens) {
        metrics.thought(tokens);
    }
}
