//! What becomes of a request's reasoning: which family its model is of, whether it thinks and how long, and what the client is shown.

use std::sync::Arc;

use bytes::Bytes;
use chat_wire::chunk::UsageScan;
use chat_wire::families::{Family, Grammar};
use chat_wire::reshape::{FieldName, Plan, Reshaper, Shown};
use chat_wire::scan::ChatScan;
use chat_wire::splice::Edits;
use chat_wire::thinking::{self, Continued, Engine};
use routing_policies::models::{Budget, ModelRule, Reasoning, ReasoningField};

use super::cut::{Cut, CutPlan, GUARD_TOKENS, Next};
use super::route::edited;
use crate::failure::Failure;
use crate::metrics::{BudgetResult, SplitBy};
use crate::state::families::ModelFacts;
use crate::state::policy::PolicyInUse;
use crate::state::replicas::Replica;
use crate::upstream::client::{Client, UpstreamCall};

/// What a request and its policy say of reasoning.
#[derive(Debug)]
pub struct Asked {
    policy: Arc<PolicyInUse>,
    facts: Arc<ModelFacts>,
    scan: ChatScan,
    /// The client's own bytes, of which `scan` is.
    body: Bytes,
    /// What changes in them whichever replica gets them.
    base: Edits,
    /// The budget that the client asks for, in tokens.
    budget: Option<u64>,
    shown: Shown,
    field: FieldName,
    lane: Option<LaneSays>,
}

/// What a request's lane says, the client's wish considered.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneSays {
    /// Whether the model thinks.
    pub(super) thinking: Option<bool>,
    /// Most tokens of it.
    pub(super) budget: Option<u64>,
    /// How hard.
    pub(super) effort: Option<&'static str>,
}

/// What one replica gets, and how its answer is read.
#[derive(Debug)]
pub struct Prepared {
    /// The request, where it is another than for all.
    pub(super) call: Option<UpstreamCall>,
    /// How the answer is reshaped; `None` where it passes as it is, because nobody knows the model.
    pub(super) plan: Option<Plan>,
    /// The budget that holds there, in tokens.
    pub(super) budget: Option<u64>,
    /// How its thought is cut, where the gateway keeps the budget.
    pub(super) cut: Option<Box<CutPlan>>,
    /// The client wants a whole answer, and the replica sends a stream, so that it can be cut.
    pub(super) gather: bool,
}

/// What of a budget goes into a request.
#[derive(Debug, Default)]
struct Kept {
    budget: Option<u64>,
    changed: bool,
    cut: Option<Box<CutPlan>>,
    gather: bool,
    /// Nothing may be thought: this goes out, with the thought closed already.
    closed: Option<UpstreamCall>,
}

impl Asked {
    /// Of a request for this model.
    ///
    /// # Errors
    /// A budget that is none.
    pub(super) fn of(
        policy: Arc<PolicyInUse>,
        model: &str,
        scan: ChatScan,
        body: Bytes,
        base: Edits,
        lane: Option<LaneSays>,
    ) -> Result<Self, Failure> {
        let asked = thinking::asked(&scan.thinking).map_err(|error| Failure::BadBudget {
            field: error.field,
            message: error.to_string(),
        })?;
        let budget = lane.map_or(asked, |lane| lane.budget);
        let facts = policy.model(model);
        let rule = facts.rule.as_ref();
        let shown = match rule.map(|rule| rule.reasoning) {
            None | Some(Reasoning::Field) if scan.thinking.excluded => Shown::Hidden,
            None | Some(Reasoning::Field) => Shown::Field,
            Some(Reasoning::Hidden) => Shown::Hidden,
            Some(Reasoning::Summary) => Shown::Summary,
        };
        let field = match rule.map(|rule| rule.field).unwrap_or_default() {
            ReasoningField::ReasoningContent => FieldName::ReasoningContent,
            ReasoningField::Reasoning => FieldName::Reasoning,
            ReasoningField::Both => FieldName::Both,
        };
        Ok(Self {
            policy,
            facts,
            scan,
            body,
            base,
            budget,
            shown,
            field,
            lane,
        })
    }

    fn rule(&self) -> Option<&ModelRule> {
        self.facts.rule.as_ref()
    }

    /// The family at this replica: the policy's word, else its chat template's, else the name's.
    fn family(&self, replica: &Replica) -> Option<&Arc<Family>> {
        let told = self.facts.told.as_ref();
        told.or_else(|| self.policy.models().at(replica.index()))
            .or(self.facts.by_name.as_ref())
    }

    /// What this replica gets of the request `general`. A model that nobody knows is counted.
    ///
    /// # Errors
    /// The gateway is to keep the budget, and cannot here.
    pub(super) fn prepare(
        &self,
        replica: &Replica,
        general: &UpstreamCall,
    ) -> Result<Prepared, Failure> {
        let Some(family) = self.family(replica) else {
            return Ok(self.unknown(replica));
        };
        let wish = family.switch.wish(&self.scan.thinking);
        let by_policy = self.rule().and_then(|rule| rule.thinking);
        // Where a family has no switch, a lane cannot turn it.
        let by_lane = self.lane.and_then(|lane| lane.thinking);
        let forced = by_lane.filter(|_| !family.switch.names.is_empty());
        let asked = wish.map(|(thinks, _)| thinks);
        let mut thinks = forced.or(asked).or(by_policy);
        let mut edits = self.base.clone();
        let (scan, body) = (&self.scan, &self.body);
        let mut changed = thinking::edit_history(&mut edits, body, scan, family.history);
        changed |= self.edit_effort(&mut edits, family, by_lane);
        let unswitched = edits.clone();
        if let Some(thinks) = forced {
            changed |= thinking::force_switch(&mut edits, scan, &family.switch, thinks);
        } else if let Some(thinks) = thinks
            && !matches!(wish, Some((_, true)))
        {
            changed |= thinking::edit_switch(&mut edits, scan, &family.switch, thinks);
        }
        let may_think = match &family.grammar {
            Grammar::None => false,
            Grammar::Tags(tags) => thinks.unwrap_or(tags.thinking),
            Grammar::Channels => thinks.unwrap_or(true),
        };
        let mut kept = Kept::default();
        if may_think {
            kept = self.keep_budget(replica, family, &mut edits, (unswitched, general))?;
        }
        let as_written = self.scan.thinking.inline && self.shown == Shown::Field;
        if kept.closed.is_some() {
            thinks = Some(false);
        }
        let own = (changed || kept.changed).then(|| UpstreamCall {
            body: edited(edits, &self.body),
            ..general.clone()
        });
        Ok(Prepared {
            call: kept.closed.or(own),
            plan: Some(Plan {
                grammar: if as_written {
                    Grammar::None
                } else {
                    family.grammar.clone()
                },
                thinking: thinks,
                engine_splits: replica.splits_reasoning(),
                shown: self.shown,
                field: self.field,
            }),
            budget: kept.budget,
            cut: kept.cut,
            gather: kept.gather,
        })
    }

    /// Writes the effort of the lane, or the client's in the family's own words. Whether the request is another than for all.
    fn edit_effort(&self, edits: &mut Edits, family: &Family, by_lane: Option<bool>) -> bool {
        if !family.reads_effort() {
            return false;
        }
        let said = self.scan.thinking.effort_word();
        let by_lane_effort = self.lane.and_then(|lane| lane.effort);
        let off = by_lane == Some(false) && family.switch.names.is_empty();
        let wanted = if off {
            Some("none")
        } else {
            by_lane_effort.or(said)
        };
        let Some(wanted) = wanted.map(|wanted| family.effort(wanted)) else {
            return false;
        };
        said != Some(wanted) && thinking::edit_effort(edits, &self.scan, wanted)
    }

    /// A model of no known family: the replica's own split is shown as the policy says, where it says anything.
    fn unknown(&self, replica: &Replica) -> Prepared {
        replica.metrics().split(SplitBy::UnknownFamily);
        let passes = self.rule().is_none() && self.shown == Shown::Field;
        let plan = Plan {
            grammar: Grammar::None,
            thinking: None,
            engine_splits: false,
            shown: self.shown,
            field: self.field,
        };
        Prepared {
            call: None,
            plan: (!passes).then_some(plan),
            budget: None,
            cut: None,
            gather: false,
        }
    }

    /// The budget that holds at this replica, put into its engine's words or kept here. `unswitched` are the edits without thinking's
    /// switch.
    fn keep_budget(
        &self,
        replica: &Replica,
        family: &Family,
        edits: &mut Edits,
        (unswitched, general): (Edits, &UpstreamCall),
    ) -> Result<Kept, Failure> {
        let most = self.rule().and_then(|rule| rule.thinking_tokens_max);
        let most = most.map(u64::from);
        let Some(tokens) = thinking::budget(self.budget, most, self.scan.max_tokens) else {
            return Ok(Kept::default());
        };
        let metrics = replica.metrics();
        let lowered = self.budget.or(most).is_some_and(|asked| tokens < asked);
        let result = if lowered {
            BudgetResult::Lowered
        } else {
            BudgetResult::Kept
        };
        let keeper = self.rule().map(|rule| rule.budget).unwrap_or_default();
        let engine = replica.engine();
        let own = engine == Some(Engine::Pinion);
        let plan = |limit: u64, edits: Edits| {
            let how = Continued::of(family, engine, &self.scan)?;
            // llama.cpp's switch is the continuation's own.
            Ok(Box::new(CutPlan {
                limit,
                how,
                scan: self.scan.clone(),
                body: self.body.clone(),
                edits,
                general: general.clone(),
            }))
        };
        let switched = |edits: &Edits| match engine {
            Some(Engine::LlamaCpp) => unswitched.clone(),
            _ => edits.clone(),
        };
        if keeper == Budget::Emulated && !own {
            let mut again = switched(edits);
            Continued::drop_budgets(&mut again, &self.scan);
            Continued::drop_budgets(edits, &self.scan);
            let gather = !self.scan.stream && tokens > 0;
            if gather {
                Continued::stream(edits, &self.scan);
                Continued::stream(&mut again, &self.scan);
            }
            let plan = plan(tokens, again).map_err(|refusal: thinking::Refusal| {
                metrics.budget(BudgetResult::Refused);
                let message = format!(
                    "the gateway keeps this model's budget of thinking ({tokens} tokens), and cannot for this request: {refusal}"
                );
                Failure::NoBudget { message }
            })?;
            metrics.budget(result);
            let closed = (tokens == 0).then(|| plan.call("", 0));
            return Ok(Kept {
                budget: Some(tokens),
                changed: true,
                cut: closed.is_none().then_some(plan),
                gather,
                closed,
            });
        }
        let Some(engine) = engine else {
            metrics.budget(BudgetResult::Unsupported);
            return Ok(Kept::default());
        };
        metrics.budget(result);
        let again = switched(edits);
        let guarded = keeper == Budget::Guarded && !own && self.scan.stream;
        let limit = tokens.saturating_add(GUARD_TOKENS);
        Ok(Kept {
            budget: Some(tokens),
            changed: thinking::edit_budget(edits, &self.scan, engine, tokens),
            cut: guarded.then(|| plan(limit, again).ok()).flatten(),
            ..Kept::default()
        })
    }
}

/// An answer that is reshaped, with the budget of its thinking.
#[derive(Debug)]
pub struct Split {
    pub(super) reshaper: Reshaper,
    budget: Option<u64>,
    cut: Option<Cut>,
}

impl Split {
    /// Of an answer of this replica, which is asked again where its thought is cut.
    pub(super) fn new(
        plan: Plan,
        budget: Option<u64>,
        cut: Option<Box<CutPlan>>,
        (client, replica): (&Arc<Client>, &Arc<Replica>),
    ) -> Self {
        let cut = cut.map(|cut| Cut::new(*cut, client, replica));
        let reshaper = Reshaper::new(plan);
        Self {
            reshaper: match cut {
                Some(_) => reshaper.watching(),
                None => reshaper,
            },
            budget,
            cut,
        }
    }

    /// What the replica goes on with, where its thought is cut behind the last event.
    pub(super) fn cut(&mut self) -> Option<Next> {
        self.cut.as_mut()?.next(&mut self.reshaper)
    }

    /// Notes at the end of an answer who split it, and how many tokens of reasoning it had.
    pub(super) fn note(&self, replica: &Replica, usage: Option<&UsageScan>) {
        let metrics = replica.metrics();
        if self.reshaper.engine_split() {
            replica.on_split_by_itself();
            metrics.split(SplitBy::Replica);
        } else if self.reshaper.gateway_split() {
            metrics.split(SplitBy::Gateway);
        }
        if self.reshaper.has_unread() {
            metrics.split(SplitBy::Unread);
        }
        if let Some(tokens) = usage.and_then(|usage| usage.reasoning_tokens) {
            metrics.thought(tokens);
            if self.budget.is_some_and(|budget| tokens >= budget) {
                metrics.budget(BudgetResult::Reached);
            }
        }
    }
}
