//! Budgets of thinking that the gateway keeps itself: the thought is cut at the limit, and the same replica goes on behind it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use chat_wire::reshape::Reshaper;
use chat_wire::scan::ChatScan;
use chat_wire::splice::Edits;
use chat_wire::thinking::Continued;
use http::response::Parts;

use super::route::edited;
use crate::failure::Failure;
use crate::metrics::BudgetResult;
use crate::state::breaker::Went;
use crate::state::gate::Try;
use crate::state::replicas::Replica;
use crate::upstream::body::UpstreamBody;
use crate::upstream::client::{Client, UpstreamCall};

/// Tokens that an engine may think past its budget before the gateway cuts: it may close the thought with a sentence.
pub(super) const GUARD_TOKENS: u64 = 16;
/// Most cuts in one answer. A model that opens a thought again and again is left to it.
const CUTS_MAX: u8 = 3;

/// How the answer of one request is cut.
#[derive(Clone, Debug)]
pub struct CutPlan {
    /// Tokens of thought.
    pub(super) limit: u64,
    pub(super) how: Continued,
    pub(super) scan: ChatScan,
    /// The client's own bytes, of which `scan` is.
    pub(super) body: Bytes,
    /// What changes in them besides.
    pub(super) edits: Edits,
    pub(super) general: UpstreamCall,
}

impl CutPlan {
    /// The request to go on behind this thought.
    pub(super) fn call(&self, thought: &str, tokens: u64) -> UpstreamCall {
        let mut edits = self.edits.clone();
        self.how.edit(&mut edits, &self.scan, thought, tokens);
        UpstreamCall {
            body: edited(edits, &self.body),
            ..self.general.clone()
        }
    }
}

/// The cuts of one answer.
#[derive(Debug)]
pub struct Cut {
    plan: CutPlan,
    client: Arc<Client>,
    replica: Arc<Replica>,
    cuts: u8,
}

impl Cut {
    pub(super) fn new(plan: CutPlan, client: &Arc<Client>, replica: &Arc<Replica>) -> Self {
        Self {
            plan,
            client: client.clone(),
            replica: replica.clone(),
            cuts: 0,
        }
    }

    /// Whether the thought has come to its limit with the last event: then the request by which the replica goes on.
    pub(super) fn next(&mut self, reshaper: &mut Reshaper) -> Option<Next> {
        let watch = reshaper.watch()?;
        let tokens = watch.tokens();
        if !watch.is_thinking() || tokens < self.plan.limit || self.cuts == CUTS_MAX {
            return None;
        }
        let call = self.plan.call(reshaper.thought()?, tokens);
        reshaper.resume();
        self.cuts += 1;
        self.replica.metrics().budget(BudgetResult::Cut);
        let (client, replica) = (self.client.clone(), self.replica.clone());
        Some(Next(Box::pin(async move {
            let trying = Try::new(&replica);
            let answer = client.call(&replica, &call).await;
            trying.ended(match &answer {
                Ok((parts, _)) if !parts.status.is_server_error() => Went::Well,
                _ => Went::Badly,
            });
            answer
        })))
    }
}

type Answering = dyn Future<Output = Result<(Parts, UpstreamBody), Failure>> + Send;

/// The replica's answer behind the cut, on its way.
pub(super) struct Next(Pin<Box<Answering>>);

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

impl Next {
    /// Its head, and the body to read.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(Parts, UpstreamBody), Failure>> {
        self.0.as_mut().poll(cx)
    }
}
