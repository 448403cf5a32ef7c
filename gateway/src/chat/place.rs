//! Looks up what is remembered and believed of a request, and lets the policy decide.

use routing_policies::estimate::ModelKey;
use routing_policies::ledger::Circumstances;
use routing_policies::placement::Block;
use routing_policies::{
    Decision, Features, PlacementKey, Policy, PrefixSeen, ReplicaId, ReplicaView, Seen,
};
use tokio::time::Instant;

use super::parse::ChatCall;
use crate::state::Known;
use crate::state::sent::Placed;

/// The decision among `views`, which are those that the request's lane leads to, and what of it a request takes along. Whether the
/// session is pinned to a replica elsewhere, too: that pin stays.
pub(super) fn place(
    known: &Known,
    policy: &Policy,
    call: &ChatCall,
    views: &[ReplicaView],
) -> (Decision, Placed, bool) {
    let model = model_key(call);
    let bytes_per_token = known.beliefs.bytes_per_token(model);
    let blocks = call.chain.blocks(bytes_per_token);
    let prompt_tokens = call.chain.tokens(bytes_per_token);
    let features = Features {
        prompt_tokens,
        blocks: &blocks,
        ..features(policy, call)
    };
    let Past { seen: all, lost } = past(known, policy, call, views);
    let seen = all.among(views);
    let changed = seen
        .pin
        .filter(|_| policy.session.infer && seen.prefix.is_none());
    if let Some(pin) = changed {
        note_change(known, call, pin, &blocks);
    }
    let decision = known.beliefs.decide(policy, &features, seen, views);
    let ask = features.ask(policy, seen);
    let circumstances = Circumstances {
        reason: decision.reason,
        failed_over: false,
        restarted: lost && seen == Seen::default(),
        changed: changed.is_some(),
    };
    let (new_conversation, home, key) = (ask.new_conversation, ask.home, ask.key);
    // A request that is placed by load alone is not believed to leave anything behind either.
    let by_load = ask.blocks.is_empty();
    let placed = Placed {
        model,
        bytes: call.chain.bytes(),
        prompt_tokens,
        blocks: if by_load { Vec::new() } else { blocks },
        new_conversation,
        home,
        key,
        lane: None,
        circumstances,
    };
    (decision, placed, all.pin != seen.pin)
}

pub(super) fn model_key(call: &ChatCall) -> ModelKey {
    ModelKey::of(call.scan.model.as_deref().unwrap_or_default())
}

/// Notes where a request begins to differ from what its session sent before, as far as its replica's cache is believed to know that.
fn note_change(known: &Known, call: &ChatCall, pin: ReplicaId, blocks: &[Block]) {
    let held = known.beliefs.held_blocks(pin, blocks);
    let Some(place) = call.chain.place(held) else {
        return;
    };
    let message = place.message.and_then(|at| call.scan.messages.get(at));
    let part = message.map_or("tools", |message| message.role.as_str());
    call.record.changed(place, part);
}

/// What the request has to be recognised by, its prompt left out.
fn features(policy: &Policy, call: &ChatCall) -> Features<'static> {
    let infer = policy.session.infer;
    let root = (!call.scan.messages.is_empty()).then(|| call.chain.root());
    let nameless = call.session.is_none() && !(infer && root.is_some());
    // The body is hashed only where it is all there is to go by.
    let body = PlacementKey::of_body(if nameless { &call.body } else { b"" });
    Features {
        session: call.session,
        root,
        body,
        prompt_tokens: 0,
        blocks: &[],
    }
}

/// What is remembered of a request's past.
struct Past {
    seen: Seen,
    /// Something was remembered, but of a replica that was restarted since.
    lost: bool,
}

/// What is remembered of this session and this conversation.
fn past(known: &Known, policy: &Policy, call: &ChatCall, views: &[ReplicaView]) -> Past {
    let mut lost = false;
    let mut held = |dated| {
        let (replica, kept) = known.recall(dated)?;
        lost |= !kept;
        kept.then_some(replica)
    };
    let pin = call.session.and_then(|key| known.sessions.get_dated(&key));
    let pin = pin.and_then(&mut held);
    let infer = policy.session.infer;
    // Where a turn between took another lane, the conversation still has its home in this one.
    let here = |dated: &(u16, Instant)| {
        let replica = known.recall(*dated);
        replica.is_none_or(|(id, _)| views.iter().any(|view| view.id == id))
    };
    let remembered = |key| known.prefixes.get_dated(&key).filter(here);
    let deepest = infer.then(|| call.chain.deepest(remembered));
    let prefix = deepest.flatten().and_then(|(depth, dated)| {
        Some(PrefixSeen {
            replica: held(dated)?,
            whole: depth == call.chain.keys().len(),
        })
    });
    Past {
        seen: Seen { pin, prefix },
        lost,
    }
}
