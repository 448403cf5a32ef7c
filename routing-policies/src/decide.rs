//! Which replicas may answer, in order, and why. A function: same inputs, same output, on every host and build.

use std::cmp::Reverse;

use crate::key::{PlacementKey, PrefixKey, ReplicaId, SessionKey};
use crate::policy::Policy;
use crate::reason::Reason;
use crate::rendezvous;

/// What a request has to be recognised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// The session's key, where something names it.
    pub session: Option<SessionKey>,
    /// The root of the conversation, where it has messages.
    pub root: Option<PrefixKey>,
    /// A hash of the body. Only looked at where the request has neither, or has no session and the policy does not infer:
    /// elsewhere any value will do, and a large body need not be hashed.
    pub body: PlacementKey,
}

/// What the gateway remembers of a request's past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Seen {
    /// Where the session is pinned.
    pub pin: Option<ReplicaId>,
    /// Where the deepest remembered prefix of the conversation went.
    pub prefix: Option<PrefixSeen>,
}

/// The deepest remembered prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixSeen {
    /// The replica that it went to.
    pub replica: ReplicaId,
    /// Whether it covers every message of the request: then this is no later turn but the same request once more, and a hundred of
    /// those must not all wait at one replica.
    pub whole: bool,
}

/// One replica as the gateway sees it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaView {
    /// Its id.
    pub id: ReplicaId,
    /// Whether it takes requests.
    pub ready: bool,
    /// Requests that this gateway has open there.
    pub in_flight: u32,
}

/// Where a request may go, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Every ready replica once, first choice first. Empty exactly when the reason is [`Reason::NoneReady`].
    pub candidates: Vec<ReplicaId>,
    /// Why the first is the first.
    pub reason: Reason,
    /// What to do with the session's pin.
    pub pin: PinAction,
}

/// What to do with a pin once a replica has answered. In all cases but [`PinAction::None`] the session is pinned to the replica
/// that answered, which after a failover is not the first candidate; the variants tell a metric what that amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PinAction {
    /// There is no named session to pin.
    None,
    /// A first pin.
    Create,
    /// The pin holds; its age starts anew.
    Refresh,
    /// The pin names a replica that is not ready; it moves.
    Move,
}

/// Decides. `replicas` holds each replica once, in any order; those that are not ready are never candidates.
#[must_use]
pub fn decide(
    policy: &Policy,
    request: &Features,
    seen: Seen,
    replicas: &[ReplicaView],
) -> Decision {
    let mut ready: Vec<ReplicaView> = replicas.iter().filter(|r| r.ready).copied().collect();
    let identity = Identity::of(policy, request);
    rendezvous::order(identity.key(request), &mut ready, |replica| replica.id);
    if ready.is_empty() {
        return Decision {
            candidates: Vec::new(),
            reason: Reason::NoneReady,
            pin: PinAction::None,
        };
    }
    let room = Room::of(policy, &ready);
    let (reason, holder) = choose(policy, identity, seen, &ready, &room);
    match identity {
        Identity::Nothing => ready.sort_by_key(|replica| replica.in_flight),
        // A stable sort: who is over the bound goes behind, each part stays in the key's order.
        _ => ready.sort_by_key(|replica| !room.fits(replica)),
    }
    if let Some(holder) = holder {
        ready.sort_by_key(|replica| Reverse(replica.id == holder));
    }
    let pin = match (identity, seen.pin) {
        (Identity::Session(_), None) => PinAction::Create,
        (Identity::Session(_), Some(pin)) if pin == ready[0].id => PinAction::Refresh,
        (Identity::Session(_), Some(_)) => PinAction::Move,
        _ => PinAction::None,
    };
    Decision {
        candidates: ready.iter().map(|replica| replica.id).collect(),
        reason,
        pin,
    }
}

/// What places a request.
#[derive(Clone, Copy)]
enum Identity {
    Session(SessionKey),
    Root(PrefixKey),
    Nothing,
}

impl Identity {
    fn of(policy: &Policy, request: &Features) -> Self {
        match (request.session, request.root) {
            (Some(session), _) => Self::Session(session),
            (None, Some(root)) if policy.session.infer => Self::Root(root),
            _ => Self::Nothing,
        }
    }

    fn key(self, request: &Features) -> PlacementKey {
        match self {
            Self::Session(session) => session.into(),
            Self::Root(root) => root.into(),
            Self::Nothing => request.body,
        }
    }
}

/// How many requests each replica may have and still take a new session.
struct Room {
    capacity: u64,
}

impl Room {
    fn of(policy: &Policy, ready: &[ReplicaView]) -> Self {
        let in_flight = ready
            .iter()
            .map(|replica| u64::from(replica.in_flight))
            .sum();
        let capacity = policy
            .placement
            .load_bound
            .capacity(in_flight, ready.len() as u64);
        Self { capacity }
    }

    fn fits(&self, replica: &ReplicaView) -> bool {
        u64::from(replica.in_flight) < self.capacity
    }
}

/// The reason, and the replica to put in front of the order where memory names one. `ready` is in the key's own order, not empty.
fn choose(
    policy: &Policy,
    identity: Identity,
    seen: Seen,
    ready: &[ReplicaView],
    room: &Room,
) -> (Reason, Option<ReplicaId>) {
    let find = |id: ReplicaId| ready.iter().find(|replica| replica.id == id);
    let (home, full) = match identity {
        Identity::Session(_) => (Reason::SessionHome, Reason::SessionHomeFull),
        Identity::Root(_) => (Reason::PrefixHome, Reason::PrefixHomeFull),
        Identity::Nothing => return (Reason::Spread, None),
    };
    let pin = seen
        .pin
        .filter(|_| matches!(identity, Identity::Session(_)));
    // ## pinned => pinned
    // A held pin survives load: the session's whole prefix is there, and waiting is mostly cheaper than a cold prefill.
    if let Some(pin) = pin.and_then(find) {
        return (Reason::PinHeld, Some(pin.id));
    }
    // ## remembered => remembered
    // A later turn stays whatever the load, like a pin. The same request once more stays only where there is room.
    let mut gone = pin.is_some();
    if let Some(prefix) = seen.prefix.filter(|_| policy.session.infer) {
        match find(prefix.replica) {
            Some(replica) if !prefix.whole || room.fits(replica) => {
                let reason = if gone {
                    Reason::PinBrokenGone
                } else {
                    Reason::PrefixSeen
                };
                return (reason, Some(replica.id));
            }
            Some(_) => {}
            None => gone = true,
        }
    }
    // ## new, or its holder is gone => the key's own order
    match (gone, room.fits(&ready[0])) {
        (true, _) => (Reason::PinBrokenGone, None),
        (false, true) => (home, None),
        (false, false) => (full, None),
    }
}

#[cfg(test)]
mod tests;
