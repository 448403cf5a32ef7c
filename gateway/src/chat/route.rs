//! Looks up what is remembered, lets the policy decide, and makes the request that goes to a replica.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use chat_wire::scan::ChatScan;
use chat_wire::splice::Edits;
use chat_wire::thinking;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, EXPECT, HOST};
use http::{HeaderValue, Response};
use routing_policies::Policy;
use routing_policies::lanes::{Effort, Pool, Settled};
use routing_policies::{PinAction, PrefixKey, Reason, ReplicaView, SessionKey};
use tower::{Layer, Service};

use super::lane::lane;
use super::parse::{ChatCall, TENANT};
use super::place::place;
use super::prompt::{prompt_with, writes_effort_first};
use super::reasoning::{Asked, LaneSays};
use super::relay::strip_hop_headers;
use crate::failure::Failure;
use crate::layers::Answer;
use crate::layers::observe::Record;
use crate::reply::ReplyBody;
use crate::state::Known;
use crate::state::replicas::Replica;
use crate::state::sent::Placed;
use crate::upstream::client::UpstreamCall;

/// Replicas that one request is tried at. More would turn a request that brings its replica down into an outage.
const CANDIDATES_MAX: usize = 3;

/// A chat request with the replicas that may answer it.
#[derive(Debug)]
pub struct RoutedCall {
    /// What goes to each.
    pub call: UpstreamCall,
    /// At least one and at most [`CANDIDATES_MAX`], first choice first.
    pub candidates: Vec<Arc<Replica>>,
    /// Why the first is the first.
    pub reason: Reason,
    /// The lane that it took and why, where the policy has lanes.
    pub lane: Option<(HeaderValue, &'static str)>,
    /// How it was placed.
    pub placed: Arc<Placed>,
    /// What to remember once one has answered.
    pub remember: Remember,
    /// What the client expects of a stream.
    pub stream: StreamPlan,
    /// What becomes of its reasoning.
    pub reasoning: Asked,
    /// Where the stages note what happens.
    pub record: Arc<Record>,
}

/// What to remember of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Remember {
    /// The session to pin.
    pub session: Option<SessionKey>,
    /// The conversation so far.
    pub prefix: Option<PrefixKey>,
}

/// How a stream is passed on.
#[derive(Clone, Copy, Debug)]
pub struct StreamPlan {
    /// The usage was asked for by the gateway, not by the client, who must not see its chunk.
    pub withhold_usage: bool,
    /// Answers asked for: so many finish reasons make the stream complete.
    pub answers: u64,
}

/// Makes [`Route`].
#[derive(Clone, Debug)]
pub struct RouteLayer {
    known: Arc<Known>,
}

impl RouteLayer {
    /// Decides by what is `known`.
    #[must_use]
    pub fn new(known: Arc<Known>) -> Self {
        Self { known }
    }
}

impl<S> Layer<S> for RouteLayer {
    type Service = Route<S>;

    fn layer(&self, inner: S) -> Route<S> {
        Route {
            inner,
            known: self.known.clone(),
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Route<S> {
    inner: S,
    known: Arc<Known>,
}

impl<S> Service<ChatCall> for Route<S>
where
    S: Service<RoutedCall, Response = Response<ReplyBody>, Error = Failure>,
    S: Service<RoutedCall, Future = Answer<Response<ReplyBody>, Failure>>,
{
    type Response = Response<ReplyBody>;
    type Error = Failure;
    type Future = Answer<Response<ReplyBody>, Failure>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ChatCall) -> Self::Future {
        match route(&self.known, call) {
            Ok(routed) => self.inner.call(routed),
            Err(failure) => Box::pin(std::future::ready(Err(failure))),
        }
    }
}

fn route(known: &Known, mut call: ChatCall) -> Result<RoutedCall, Failure> {
    let replicas = known.fleet.replicas();
    let in_use = call.policy.clone();
    let policy = in_use.policy();
    let lane = lane(known, &in_use, &call)?;
    head_of_lane(policy, &mut call, lane);
    let pool = lane.and_then(|settled| settled.pool);
    let views = views(known, call.scan.model.as_deref(), pool)?;
    let (decision, mut placed, pinned_elsewhere) = place(known, policy, &call, &views);
    placed.lane = lane.map(|settled| settled.lane.name.clone());
    let candidates: Vec<Arc<Replica>> = decision
        .candidates
        .iter()
        .take(CANDIDATES_MAX)
        .filter_map(|ranked| replicas.iter().find(|r| r.id() == ranked.replica))
        .cloned()
        .collect();
    let Some(first) = candidates.first() else {
        known.metrics.no_candidate(decision.reason);
        return Err(nobody(lane));
    };
    first.metrics().decision(decision.reason);
    let remember = Remember {
        session: call
            .session
            .filter(|_| decision.pin != PinAction::None && !pinned_elsewhere),
        prefix: call.chain.last().filter(|_| policy.session.infer),
    };
    let stream = StreamPlan {
        withhold_usage: call.scan.stream && !wants_usage(&call),
        answers: call.scan.n.unwrap_or(1).max(1),
    };
    // Names of lanes are letters, digits and a few signs, as the policy's reader checks.
    let told = lane.and_then(|settled| {
        let name = HeaderValue::from_str(&settled.lane.name).ok()?;
        Some((name, settled.reason.as_str()))
    });
    let reason = decision.reason;
    let record = call.record.clone();
    let base = base_edits(&mut call, stream, lane);
    let body = call.body.clone();
    let (call, scan) = upstream_call(call, &base);
    let only = || {
        known
            .fleet
            .with_models(|models| models.only().map(str::to_owned))
    };
    let model = scan.model.clone().or_else(only).unwrap_or_default();
    let says = lane.map(|settled| LaneSays {
        thinking: settled.thinking,
        budget: settled.budget,
        effort: settled.effort.map(Effort::as_str),
    });
    let reasoning = Asked::of(in_use, &model, scan, body, base, says)?;
    Ok(RoutedCall {
        call,
        candidates,
        reason,
        lane: told,
        placed: Arc::new(placed),
        remember,
        stream,
        reasoning,
        record,
    })
}

/// Where the model's prompt begins with an effort that the lane says, the conversation is known by that one.
fn head_of_lane(policy: &Policy, call: &mut ChatCall, lane: Option<Settled<'_>>) {
    let Some(effort) = lane.and_then(|settled| settled.effort).map(Effort::as_str) else {
        return;
    };
    let model = call.scan.model.as_deref().unwrap_or_default();
    let facts = call.policy.model(model);
    let family = facts.told.as_ref().or(facts.by_name.as_ref());
    if call.scan.thinking.effort_word() != Some(effort)
        && writes_effort_first(policy, model, family.map(|family| &**family))
    {
        call.chain = prompt_with(policy, TENANT, &call.scan, &call.body, Some(effort)).chain;
    }
}

/// Why nobody takes the request.
fn nobody(lane: Option<Settled<'_>>) -> Failure {
    let to = lane.and_then(|settled| Some((settled.lane, settled.pool?)));
    to.map_or(Failure::NoReplica, |(lane, pool)| {
        Failure::NoReplicaInPool {
            lane: lane.name.to_string(),
            pool: pool.name().to_owned(),
        }
    })
}

/// Every replica of `pool` as the decision sees it. One whose requests fail is as one that is not ready, unless that leaves nobody: then
/// an answer that may fail is better than none.
fn views(
    known: &Known,
    model: Option<&str>,
    pool: Option<&Pool>,
) -> Result<Vec<ReplicaView>, Failure> {
    let replicas = known.fleet.replicas().iter();
    let in_pool = replicas.filter(|replica| pool.is_none_or(|pool| pool.has(replica.id())));
    let in_pool: Vec<&Arc<Replica>> = in_pool.collect();
    let view = |replica: &Arc<Replica>, ready| ReplicaView {
        id: replica.id(),
        ready,
        in_flight: u32::try_from(replica.in_flight()).unwrap_or(u32::MAX),
    };
    let mut views: Vec<ReplicaView> = known.fleet.with_models(|models| match model {
        Some(model) if models.is_unknown(model) => Err(Failure::ModelNotFound {
            model: model.to_owned(),
            known: models.names(),
        }),
        _ => Ok(in_pool
            .iter()
            .map(|r| view(r, r.is_ready() && models.may_serve(r.index(), model)))
            .collect()),
    })?;
    let answers =
        |(view, replica): (&ReplicaView, &&Arc<Replica>)| view.ready && replica.gate().takes();
    let answering: Vec<bool> = views.iter().zip(&in_pool).map(answers).collect();
    if answering.contains(&true) {
        for (view, answers) in views.iter_mut().zip(answering) {
            view.ready = answers;
        }
    }
    Ok(views)
}

fn wants_usage(call: &ChatCall) -> bool {
    let options = call.scan.stream_options.as_ref();
    options.is_some_and(|options| options.include_usage == Some(true))
}

/// What changes in the body whichever replica gets it.
fn base_edits(call: &mut ChatCall, stream: StreamPlan, lane: Option<Settled<'_>>) -> Edits {
    let mut edits = Edits::new();
    let most = lane.and_then(|settled| settled.lane.max_tokens);
    if let Some(most) = most.map(u64::from)
        && call.scan.max_tokens.is_none_or(|asked| asked > most)
    {
        thinking::edit_max_tokens(&mut edits, &call.scan, most);
        call.scan.max_tokens = Some(most);
    }
    if stream.withhold_usage {
        edits.include_usage(&call.scan);
    }
    if let (Some(span), Some(tools)) = (&call.scan.tools, &call.tools) {
        edits.replace(span.clone(), tools.clone());
    }
    edits
}

/// The client's request without what belongs to its own connection, and with usage asked for in every stream.
fn upstream_call(call: ChatCall, base: &Edits) -> (UpstreamCall, ChatScan) {
    let ChatCall {
        uri,
        mut headers,
        body,
        scan,
        ..
    } = call;
    strip_hop_headers(&mut headers);
    // The first three are the connection's own; a compressed stream could not be passed on event by event.
    for name in [HOST, CONTENT_LENGTH, EXPECT, ACCEPT_ENCODING] {
        headers.remove(name);
    }
    let body = edited(base.clone(), &body);
    let uri = uri
        .path_and_query()
        .map_or(uri.clone(), |path| path.clone().into());
    (UpstreamCall { uri, headers, body }, scan)
}

/// The body with these edits, which were made from a scan of it.
pub(super) fn edited(edits: Edits, body: &Bytes) -> Bytes {
    edits.apply(body).unwrap_or_else(|error| {
        tracing::error!(%error, "an edit does not fit its own scan; report this");
        body.clone()
    })
}
