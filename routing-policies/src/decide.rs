//! Which replicas may answer, in order, and why. A function: same inputs, same output, on every host and build.

use crate::key::{PlacementKey, PrefixKey, ReplicaId, SessionKey};
use crate::placement::{Ask, Block, Ranked, State, rank};
use crate::policy::Policy;
use crate::reason::Reason;

/// What a request has to be recognised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features<'a> {
    /// The session's key, where something names it.
    pub session: Option<SessionKey>,
    /// The root of the conversation, where it has messages.
    pub root: Option<PrefixKey>,
    /// A hash of the body. Only looked at where the request has neither, or has no session and the policy does not infer:
    /// elsewhere any value will do, and a large body need not be hashed.
    pub body: PlacementKey,
    /// Length of its prompt in tokens, as well as the gateway knows.
    pub prompt_tokens: u32,
    /// Its prompt's blocks, first one first.
    pub blocks: &'a [Block],
}

impl<'a> Features<'a> {
    /// The request as the placement rule sees it; what [`State::sent`] is to be told.
    #[must_use]
    pub fn ask(&self, policy: &Policy, seen: Seen) -> Ask<'a> {
        let identity = Identity::of(policy, self);
        let later_turn = seen.prefix.filter(|prefix| !prefix.whole);
        let nothing = matches!(identity, Identity::Nothing);
        Ask {
            prompt_tokens: self.prompt_tokens,
            // A policy that does not infer wants no request placed by what it says.
            blocks: if nothing { &[] } else { self.blocks },
            new_conversation: seen.pin.is_none() && seen.prefix.is_none() && !nothing,
            home: match identity {
                Identity::Session(_) => seen.pin.or(later_turn.map(|prefix| prefix.replica)),
                Identity::Root(_) => later_turn.map(|prefix| prefix.replica),
                Identity::Nothing => None,
            },
            key: identity.key(self),
        }
    }
}

/// What the gateway remembers of a request's past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Seen {
    /// Where the session is pinned.
    pub pin: Option<ReplicaId>,
    /// Where the deepest remembered prefix of the conversation went.
    pub prefix: Option<PrefixSeen>,
}

impl Seen {
    /// What of it counts where a request may go to `replicas` only: memories of others are as good as none.
    #[must_use]
    pub fn among(self, replicas: &[ReplicaView]) -> Self {
        let listed = |id: ReplicaId| replicas.iter().any(|replica| replica.id == id);
        Self {
            pin: self.pin.filter(|pin| listed(*pin)),
            prefix: self.prefix.filter(|prefix| listed(prefix.replica)),
        }
    }
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
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Every ready replica once with what it costs, first choice first. Empty exactly when the reason is [`Reason::NoneReady`].
    pub candidates: Vec<Ranked>,
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

/// Decides at `now_s`, seconds of the clock that `state` was told. `replicas` holds each replica once, in any order; those that are not
/// ready are never candidates.
///
/// The order is that of the placement rule's cost, with two exceptions. A session that its load drives from its home goes to its second
/// home, the first of the others in its key's own order, wherever that costs no more than the cheapest and the policy's margin. So a
/// session that moves to and fro leaves its prefix on two replicas, not on all. A session whose home is gone goes, within the same
/// margin, to the replica that has lately taken over least of such sessions ([`State::took_over`]).
#[must_use]
pub fn decide(
    policy: &Policy,
    request: &Features<'_>,
    seen: Seen,
    state: &State,
    replicas: &[ReplicaView],
    now_s: f64,
) -> Decision {
    let identity = Identity::of(policy, request);
    let ready = |id: &ReplicaId| replicas.iter().any(|r| r.ready && r.id == *id);
    // Where the pin is gone, a replica that has served the conversation since is as good a home.
    let pin = seen.pin.filter(ready);
    let ask = request.ask(policy, Seen { pin, ..seen });
    let mut ranked = rank(&policy.placement.settings, state, &ask, replicas, now_s);
    let preferred = |without: Option<ReplicaId>| {
        let others = ranked.iter().filter(|r| Some(r.replica) != without);
        others.max_by_key(|r| (ask.key.score(r.replica), r.replica))
    };
    let Some(first_choice) = preferred(None).copied() else {
        return Decision {
            candidates: Vec::new(),
            reason: Reason::NoneReady,
            pin: PinAction::None,
        };
    };
    let second_home = preferred(ask.home).map(|second| second.replica);
    prefer_second_home(&mut ranked, ask.home, second_home);
    let reason = reason(identity, seen, &ranked, &first_choice);
    if reason == Reason::PinBrokenGone && !ask.home.is_some_and(|home| ready(&home)) {
        let margin_s = state.margin_s(&policy.placement.settings);
        prefer_lightest_heir(&mut ranked, state, margin_s);
    }
    let first = ranked[0].replica;
    let pin = match (identity, seen.pin) {
        (Identity::Session(_), None) => PinAction::Create,
        (Identity::Session(_), Some(pin)) if pin == first => PinAction::Refresh,
        (Identity::Session(_), Some(_)) => PinAction::Move,
        _ => PinAction::None,
    };
    Decision {
        reason,
        candidates: ranked,
        pin,
    }
}

/// Puts the second home in front where the home itself is ready and no longer first.
fn prefer_second_home(
    ranked: &mut [Ranked],
    home: Option<ReplicaId>,
    second_home: Option<ReplicaId>,
) {
    let place = |id: Option<ReplicaId>| ranked.iter().position(|r| Some(r.replica) == id);
    let (Some(home), Some(second)) = (place(home), place(second_home)) else {
        return;
    };
    let margin_s = ranked[0].cost.leave_s;
    let near = ranked[second].cost.total_s() - ranked[0].cost.total_s() <= margin_s;
    if home > 0 && second < home && near {
        ranked[..=second].rotate_right(1);
    }
}

/// Puts the replica in front that has taken over least of lost sessions, of those that cost no more than the cheapest and the margin
/// and hold no less of the prompt. Left to the keys' order, which is a draw for each session, one neighbour of a dead replica gets
/// twice its part.
fn prefer_lightest_heir(ranked: &mut [Ranked], state: &State, margin_s: f64) {
    let cheapest = ranked[0];
    let near = |r: &&Ranked| {
        r.cost.total_s() - cheapest.cost.total_s() <= margin_s
            && r.held_tokens >= cheapest.held_tokens
    };
    let tokens = |r: &Ranked| state.taken_over_tokens(r.replica);
    // The first of equals, which costs least.
    let by_tokens = |a: &&Ranked, b: &&Ranked| tokens(a).total_cmp(&tokens(b));
    let lightest = ranked.iter().filter(near).min_by(by_tokens);
    let place = lightest.and_then(|heir| ranked.iter().position(|r| r.replica == heir.replica));
    if let Some(place) = place {
        ranked[..=place].rotate_right(1);
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
    fn of(policy: &Policy, request: &Features<'_>) -> Self {
        match (request.session, request.root) {
            (Some(session), _) => Self::Session(session),
            (None, Some(root)) if policy.session.infer => Self::Root(root),
            _ => Self::Nothing,
        }
    }

    fn key(self, request: &Features<'_>) -> PlacementKey {
        match self {
            Self::Session(session) => session.into(),
            Self::Root(root) => root.into(),
            Self::Nothing => request.body,
        }
    }
}

/// Why the first of `ranked`, which is not empty, is the first. `first_choice` is the one that the key itself prefers.
fn reason(identity: Identity, seen: Seen, ranked: &[Ranked], first_choice: &Ranked) -> Reason {
    let first = ranked[0].replica;
    let ready = |id: ReplicaId| ranked.iter().any(|ranked| ranked.replica == id);
    let (home, full) = match identity {
        Identity::Session(_) => (Reason::SessionHome, Reason::SessionHomeFull),
        Identity::Root(_) => (Reason::PrefixHome, Reason::PrefixHomeFull),
        Identity::Nothing => return Reason::Spread,
    };
    let pin = seen
        .pin
        .filter(|_| matches!(identity, Identity::Session(_)));
    // ## pinned => pinned, or moved
    if let Some(pin) = pin.filter(|pin| ready(*pin)) {
        return if pin == first {
            Reason::PinHeld
        } else {
            Reason::PinMovedForLoad
        };
    }
    // ## its holder is gone => whoever costs least, or about that and has taken over least
    let lost = |prefix: &PrefixSeen| !ready(prefix.replica);
    if pin.is_some() || seen.prefix.as_ref().is_some_and(lost) {
        return Reason::PinBrokenGone;
    }
    // ## remembered => remembered, or moved
    match seen.prefix {
        Some(prefix) if prefix.replica == first => return Reason::PrefixSeen,
        // The same request once more belongs nowhere: where it goes is as for a new one.
        Some(prefix) if !prefix.whole => return Reason::PinMovedForLoad,
        _ => {}
    }
    // ## new => the key's own choice, or whoever costs less
    if first == first_choice.replica {
        home
    } else if ranked[0].held_tokens > first_choice.held_tokens {
        Reason::PrefixShared
    } else {
        full
    }
}

#[cfg(test)]
mod herd;
#[cfg(test)]
mod orphans;
#[cfg(test)]
mod tests;
