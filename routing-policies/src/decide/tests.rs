use proptest::prelude::*;

use super::*;
use crate::placement::Settings;

fn id(index: usize) -> ReplicaId {
    ReplicaId::of(&format!("replica-{index}"))
}

fn session(number: u32) -> SessionKey {
    SessionKey::of(&[&number.to_le_bytes()])
}

fn root(number: u32) -> PrefixKey {
    PrefixKey::start(&[&number.to_le_bytes()])
}

fn features(session: Option<SessionKey>, root: Option<PrefixKey>) -> Features<'static> {
    Features {
        session,
        root,
        body: PlacementKey::of_body(b"body"),
        prompt_tokens: 1_000,
        blocks: &[],
    }
}

/// Ready replicas with these loads; `None` is one that is not ready.
fn fleet(loads: &[Option<u32>]) -> Vec<ReplicaView> {
    let view = |(index, load): (usize, &Option<u32>)| ReplicaView {
        id: id(index),
        ready: load.is_some(),
        in_flight: load.unwrap_or(0),
    };
    loads.iter().enumerate().map(view).collect()
}

/// The default policy with a margin of one mean prefill; a request in flight weighs a tenth of one.
fn policy() -> Policy {
    let mut policy = Policy::default();
    policy.placement.settings = Settings {
        stay: 1.0,
        in_flight: 0.1,
        // A mean prefill takes less than the least saving here.
        leave_s_min: 0.0,
        ..Settings::default()
    };
    policy
}

/// Decides where nothing is believed of any replica: what is in flight is all the load there is.
fn run(request: &Features<'_>, seen: Seen, replicas: &[ReplicaView]) -> Decision {
    decide(&policy(), request, seen, &State::default(), replicas, 0.0)
}

fn ids(decision: &Decision) -> Vec<ReplicaId> {
    decision.candidates.iter().map(|c| c.replica).collect()
}

/// `expect` is the first candidate by index, the reason, and what becomes of the pin.
#[track_caller]
fn check(
    request: &Features<'_>,
    seen: Seen,
    loads: &[Option<u32>],
    expect: (Option<usize>, &str, PinAction),
) {
    let decision = run(request, seen, &fleet(loads));
    let first = decision.candidates.first().map(|c| c.replica);
    assert_eq!(
        (first, decision.reason.as_str(), decision.pin),
        (expect.0.map(id), expect.1, expect.2)
    );
}

fn pin(index: usize) -> Seen {
    Seen {
        pin: Some(id(index)),
        prefix: None,
    }
}

fn prefix(index: usize, whole: bool) -> Seen {
    Seen {
        pin: None,
        prefix: Some(PrefixSeen {
            replica: id(index),
            whole,
        }),
    }
}

/// The indexes of an idle fleet of four in this key's order.
fn preference(request: &Features<'_>) -> Vec<usize> {
    let order = ids(&run(request, Seen::default(), &fleet(&[Some(0); 4])));
    order
        .iter()
        .map(|c| (0..4).find(|index| id(*index) == *c).unwrap())
        .collect()
}

/// An idle fleet of four in which some replicas are loaded or (`None`) gone.
fn with(changes: &[(usize, Option<u32>)]) -> Vec<Option<u32>> {
    let mut loads = vec![Some(0); 4];
    for (index, load) in changes {
        loads[*index] = *load;
    }
    loads
}

#[test]
fn a_named_session_holds_its_pin_until_its_replica_is_gone_or_too_busy() {
    let request = features(Some(session(1)), Some(root(1)));
    let order = preference(&request);
    let (first, second, last) = (order[0], order[1], order[3]);
    let new = Seen::default();
    check(
        &request,
        new,
        &with(&[]),
        (Some(first), "session_home", PinAction::Create),
    );
    let loaded = with(&[(first, Some(9))]);
    check(
        &request,
        new,
        &loaded,
        (Some(second), "session_home_full", PinAction::Create),
    );
    check(
        &request,
        pin(last),
        &with(&[]),
        (Some(last), "pin_held", PinAction::Refresh),
    );
    let busy = with(&[(last, Some(9))]);
    check(
        &request,
        pin(last),
        &busy,
        (Some(last), "pin_held", PinAction::Refresh),
    );
    let too_busy = with(&[(last, Some(11))]);
    check(
        &request,
        pin(last),
        &too_busy,
        (Some(first), "pin_moved_for_load", PinAction::Move),
    );
    let gone = with(&[(first, None)]);
    check(
        &request,
        pin(first),
        &gone,
        (Some(second), "pin_broken_gone", PinAction::Move),
    );
    check(
        &request,
        pin(9),
        &with(&[]),
        (Some(first), "pin_broken_gone", PinAction::Move),
    );
    let gone = with(&[(first, None), (second, Some(9))]);
    check(
        &request,
        pin(first),
        &gone,
        (Some(order[2]), "pin_broken_gone", PinAction::Move),
    );
}

#[test]
fn a_conversation_without_a_name_stays_where_its_last_turn_went() {
    let request = features(None, Some(root(1)));
    let order = preference(&request);
    let (first, second, last) = (order[0], order[1], order[3]);
    let new = Seen::default();
    check(
        &request,
        new,
        &with(&[]),
        (Some(first), "prefix_home", PinAction::None),
    );
    let loaded = with(&[(first, Some(9))]);
    check(
        &request,
        new,
        &loaded,
        (Some(second), "prefix_home_full", PinAction::None),
    );
    let busy = with(&[(last, Some(9))]);
    check(
        &request,
        prefix(last, false),
        &busy,
        (Some(last), "prefix_seen", PinAction::None),
    );
    let too_busy = with(&[(last, Some(11))]);
    check(
        &request,
        prefix(last, false),
        &too_busy,
        (Some(first), "pin_moved_for_load", PinAction::None),
    );
    let gone = with(&[(last, None)]);
    check(
        &request,
        prefix(last, false),
        &gone,
        (Some(first), "pin_broken_gone", PinAction::None),
    );
    // A pin without a session's name is nobody's.
    check(
        &request,
        pin(last),
        &with(&[]),
        (Some(first), "prefix_home", PinAction::None),
    );
}

#[test]
fn the_same_request_once_more_stays_only_where_there_is_room() {
    let request = features(None, Some(root(1)));
    let first = preference(&request)[0];
    let second = preference(&request)[1];
    check(
        &request,
        prefix(first, true),
        &with(&[]),
        (Some(first), "prefix_seen", PinAction::None),
    );
    let loaded = with(&[(first, Some(9))]);
    let spread = (Some(second), "prefix_home_full", PinAction::None);
    check(&request, prefix(first, true), &loaded, spread);
}

#[test]
fn a_named_session_without_a_pin_follows_its_conversation() {
    let request = features(Some(session(1)), Some(root(1)));
    let last = preference(&request)[3];
    check(
        &request,
        prefix(last, false),
        &with(&[]),
        (Some(last), "prefix_seen", PinAction::Create),
    );
    // Its pin is gone, yet another replica has served the conversation since.
    let seen = Seen {
        pin: Some(id(9)),
        ..prefix(last, false)
    };
    check(
        &request,
        seen,
        &with(&[]),
        (Some(last), "pin_broken_gone", PinAction::Move),
    );
}

#[test]
fn nothing_to_recognise_by_goes_to_the_least_loaded() {
    let request = features(None, None);
    let loads = [Some(3), Some(1), Some(2), Some(1)];
    let decision = run(&request, Seen::default(), &fleet(&loads));
    assert_eq!(decision.reason, Reason::Spread);
    assert_eq!(ids(&decision)[2..], [id(2), id(0)]);
    // A tie goes by the body, so that equal loads do not all pick the first of the list.
    let firsts: Vec<ReplicaId> = (0..64u32)
        .map(|body| {
            let body = PlacementKey::of_body(&body.to_le_bytes());
            let request = Features { body, ..request };
            run(&request, Seen::default(), &fleet(&loads)).candidates[0].replica
        })
        .collect();
    assert!(firsts.contains(&id(1)) && firsts.contains(&id(3)));
    // A policy that does not infer treats a conversation like that too.
    let mut policy = policy();
    policy.session.infer = false;
    let conversation = features(None, Some(root(1)));
    let state = State::default();
    let decision = decide(
        &policy,
        &conversation,
        prefix(0, false),
        &state,
        &fleet(&loads),
        0.0,
    );
    assert_eq!(decision.reason, Reason::Spread);
}

#[test]
fn no_ready_replica_is_no_candidate_and_the_pin_is_left_alone() {
    let request = features(Some(session(1)), None);
    check(
        &request,
        pin(0),
        &[None, None],
        (None, "none_ready", PinAction::None),
    );
    check(&request, pin(0), &[], (None, "none_ready", PinAction::None));
}

#[test]
fn rc_074_memory_of_a_replica_is_no_load() {
    // What a replica is remembered to hold plays no part for a request without a prefix there: only readiness and load do.
    let request = features(None, Some(root(5)));
    let with_memory = run(&request, Seen::default(), &fleet(&[Some(1), None]));
    assert_eq!(ids(&with_memory), [id(0)]);
}

#[test]
fn rc_077_one_pin_serves_both_lanes() {
    // The session's key does not depend on whether thinking is on, though the prompts of the two lanes differ.
    for root_of_lane in [root(1), root(2), root(1)] {
        let request = features(Some(session(1)), Some(root_of_lane));
        check(
            &request,
            pin(3),
            &with(&[]),
            (Some(3), "pin_held", PinAction::Refresh),
        );
    }
}

fn loads() -> impl Strategy<Value = Vec<Option<u32>>> {
    prop::collection::vec(prop::option::weighted(0.8, 0..4u32), 0..5)
}

fn seen() -> impl Strategy<Value = Seen> {
    let prefix = (0..5usize, any::<bool>()).prop_map(|(index, whole)| PrefixSeen {
        replica: id(index),
        whole,
    });
    let pin = prop::option::of((0..5usize).prop_map(id));
    (pin, prop::option::of(prefix)).prop_map(|(pin, prefix)| Seen { pin, prefix })
}

fn request() -> impl Strategy<Value = Features<'static>> {
    let session = prop::option::of((0..8u32).prop_map(session));
    let root = prop::option::of((0..8u32).prop_map(root));
    (session, root).prop_map(|(session, root)| features(session, root))
}

proptest! {
    #[test]
    fn every_ready_replica_is_a_candidate_once_and_no_other(
        request in request(), seen in seen(), loads in loads(),
    ) {
        let replicas = fleet(&loads);
        let decision = run(&request, seen, &replicas);
        let mut candidates = ids(&decision);
        candidates.sort_unstable();
        let mut ready: Vec<_> = replicas.iter().filter(|r| r.ready).map(|r| r.id).collect();
        ready.sort_unstable();
        prop_assert_eq!(candidates, ready);
        prop_assert_eq!(decision.reason == Reason::NoneReady, decision.candidates.is_empty());
    }

    #[test]
    fn the_order_of_the_replicas_means_nothing(
        request in request(),
        seen in seen(),
        (loads, shuffled) in loads().prop_flat_map(|loads| {
            (Just(loads.clone()), Just(fleet(&loads)).prop_shuffle())
        }),
    ) {
        prop_assert_eq!(run(&request, seen, &shuffled), run(&request, seen, &fleet(&loads)));
    }

    #[test]
    fn a_held_pin_moves_only_when_the_gain_passes_the_margin(
        number in 0..8u32, root in prop::option::of((0..8u32).prop_map(root)), seen in seen(),
        loads in prop::collection::vec(prop::option::weighted(0.8, 0..25u32), 0..5),
    ) {
        let replicas = fleet(&loads);
        let decision = run(&features(Some(session(number)), root), seen, &replicas);
        let load = |id| replicas.iter().find(|r| r.id == id && r.ready).map(|r| r.in_flight);
        let least = replicas.iter().filter(|r| r.ready).map(|r| r.in_flight).min();
        match seen.pin.and_then(load) {
            // A tenth of a mean prefill each: ten more than the least loaded are the margin.
            Some(load) if load < least.unwrap_or(0) + 10 => {
                prop_assert_eq!(Some(decision.candidates[0].replica), seen.pin);
                prop_assert_eq!((decision.reason, decision.pin), (Reason::PinHeld, PinAction::Refresh));
            }
            Some(load) if load > least.unwrap_or(0) + 10 => {
                prop_assert_ne!(Some(decision.candidates[0].replica), seen.pin);
                prop_assert_eq!((decision.reason, decision.pin), (Reason::PinMovedForLoad, PinAction::Move));
            }
            Some(_) => {}
            None => prop_assert!(!matches!(decision.reason, Reason::PinHeld)),
        }
    }

    #[test]
    fn a_replica_that_leaves_moves_only_its_own_sessions_each_to_its_second_choice(
        request in request(), count in 2..5usize, gone in any::<prop::sample::Index>(),
    ) {
        let gone = gone.index(count);
        let before = ids(&run(&request, Seen::default(), &fleet(&vec![Some(0); count])));
        let mut loads = vec![Some(0); count];
        loads[gone] = None;
        let after = ids(&run(&request, Seen::default(), &fleet(&loads)));
        let expect: Vec<_> = before.into_iter().filter(|c| *c != id(gone)).collect();
        prop_assert_eq!(after, expect);
    }

    #[test]
    fn a_new_session_goes_home_while_nobody_has_less_to_do(request in request(), loads in loads()) {
        let request = Features { root: request.root.or(Some(root(9))), ..request };
        let replicas = fleet(&loads);
        let decision = run(&request, Seen::default(), &replicas);
        let Some(first) = decision.candidates.first().map(|c| c.replica) else {
            return Ok(());
        };
        let idle: Vec<_> = loads.iter().map(|load| load.map(|_| 0)).collect();
        let home = ids(&run(&request, Seen::default(), &fleet(&idle)))[0];
        let load = |id| replicas.iter().find(|r| r.id == id).map(|r| r.in_flight);
        let least = replicas.iter().filter(|r| r.ready).map(|r| r.in_flight).min();
        prop_assert_eq!(load(first), least);
        prop_assert_eq!(first == home, load(home) == least);
        let full = matches!(decision.reason, Reason::SessionHomeFull | Reason::PrefixHomeFull);
        prop_assert_eq!(full, first != home);
    }

    #[test]
    fn a_session_that_is_driven_out_goes_to_one_and_the_same_place(
        number in 0..64u32, home in 0..4usize, busy in 20..200u32, others in prop::collection::vec(0..10u32, 4),
    ) {
        // The others differ by less than the margin.
        let request = features(Some(session(number)), None);
        let at = |others: &[u32]| {
            let mut loads: Vec<_> = others.iter().map(|load| Some(*load)).collect();
            loads[home] = Some(busy + 10);
            run(&request, pin(home), &fleet(&loads)).candidates[0].replica
        };
        prop_assert_eq!(at(&others), at(&[0; 4]));
    }

    #[test]
    fn without_anything_to_recognise_by_the_least_loaded_is_first(seen in seen(), loads in loads()) {
        let replicas = fleet(&loads);
        let decision = run(&features(None, None), seen, &replicas);
        let least = replicas.iter().filter(|r| r.ready).map(|r| r.in_flight).min();
        let first = decision.candidates.first().map(|first| {
            replicas.iter().find(|r| r.id == first.replica).unwrap().in_flight
        });
        prop_assert_eq!(first, least);
    }
}
