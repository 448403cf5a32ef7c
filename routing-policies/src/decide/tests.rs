use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::policy::LoadBound;
use crate::prefix::{Chain, Message, chain};

fn id(index: usize) -> ReplicaId {
    ReplicaId::of(&format!("replica-{index}"))
}

fn session(number: u32) -> SessionKey {
    SessionKey::of(&[&number.to_le_bytes()])
}

fn root(number: u32) -> PrefixKey {
    PrefixKey::start(&[&number.to_le_bytes()])
}

fn features(session: Option<SessionKey>, root: Option<PrefixKey>) -> Features {
    Features {
        session,
        root,
        body: PlacementKey::of_body(b"body"),
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

fn run(request: &Features, seen: Seen, replicas: &[ReplicaView]) -> Decision {
    decide(&Policy::default(), request, seen, replicas)
}

/// `expect` is the first candidate by index, the reason, and what becomes of the pin.
#[track_caller]
fn check(
    request: &Features,
    seen: Seen,
    loads: &[Option<u32>],
    expect: (Option<usize>, &str, PinAction),
) {
    let decision = run(request, seen, &fleet(loads));
    let first = decision.candidates.first().copied();
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
fn preference(request: &Features) -> Vec<usize> {
    let order = run(request, Seen::default(), &fleet(&[Some(0); 4])).candidates;
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
fn a_named_session_holds_its_pin_until_its_replica_is_gone() {
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
    let loaded = with(&[(last, Some(99))]);
    check(
        &request,
        pin(last),
        &loaded,
        (Some(last), "pin_held", PinAction::Refresh),
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
    let loaded = with(&[(last, Some(99))]);
    check(
        &request,
        prefix(last, false),
        &loaded,
        (Some(last), "prefix_seen", PinAction::None),
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
    assert_eq!(decision.candidates[2..], [id(2), id(0)]);
    // A tie goes by the body, so that equal loads do not all pick the first of the list.
    let firsts: Vec<ReplicaId> = (0..64u32)
        .map(|body| {
            let body = PlacementKey::of_body(&body.to_le_bytes());
            let request = Features { body, ..request };
            run(&request, Seen::default(), &fleet(&loads)).candidates[0]
        })
        .collect();
    assert!(firsts.contains(&id(1)) && firsts.contains(&id(3)));
    // A policy that does not infer treats a conversation like that too.
    let mut policy = Policy::default();
    policy.session.infer = false;
    let conversation = features(None, Some(root(1)));
    let decision = decide(&policy, &conversation, prefix(0, false), &fleet(&loads));
    assert_eq!(decision.reason, Reason::Spread);
    let named = features(Some(session(1)), Some(root(1)));
    let decision = decide(&policy, &named, prefix(0, false), &fleet(&with(&[])));
    assert_eq!(decision.reason, Reason::SessionHome);
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

/// One turn of a conversation: a system prompt shared by all, then the user's and the assistant's messages in turn.
fn turn(session: u32, turns: u32) -> Chain {
    let system = format!(r#"{{"role":"system","content":"{}"}}"#, "long ".repeat(600));
    let mut messages = vec![(system, false)];
    for turn in 0..turns {
        messages.push((format!("user {session} {turn}"), true));
        messages.push((format!("assistant {session} {turn}"), false));
    }
    messages.pop();
    let messages = messages.iter().map(|(bytes, is_user)| Message {
        bytes: bytes.as_bytes(),
        is_user: *is_user,
    });
    chain("", "m", None, b"", messages)
}

#[test]
fn rc_072_a_shared_system_prompt_does_not_herd_sessions_onto_one_replica() {
    let mut homes: HashMap<PrefixKey, ReplicaId> = HashMap::new();
    let mut open: Vec<ReplicaId> = Vec::new();
    let mut route = |chain: &Chain| {
        let deepest = chain.deepest(|key| homes.get(&key).copied());
        let seen = deepest.map(|(messages, replica)| PrefixSeen {
            replica,
            whole: messages == chain.keys().len(),
        });
        let in_flight = |index| open.iter().filter(|r| **r == id(index)).count() as u32;
        let loads: Vec<Option<u32>> = (0..4).map(|index| Some(in_flight(index))).collect();
        let request = features(None, Some(chain.root()));
        let decision = run(
            &request,
            Seen {
                pin: None,
                prefix: seen,
            },
            &fleet(&loads),
        );
        let replica = decision.candidates[0];
        homes.insert(chain.last().unwrap(), replica);
        // Twenty requests are open at a time: 20 arrivals a second, a second each.
        open.push(replica);
        if open.len() > 20 {
            open.remove(0);
        }
        replica
    };
    let first: Vec<ReplicaId> = (0..400).map(|session| route(&turn(session, 1))).collect();
    let second: Vec<ReplicaId> = (0..400).map(|session| route(&turn(session, 2))).collect();
    for index in 0..4 {
        let share = first
            .iter()
            .filter(|replica| **replica == id(index))
            .count();
        assert!(share <= 150, "replica {index} took {share} of 400");
    }
    assert_eq!(first, second);
}

#[test]
fn rc_074_memory_of_a_replica_is_no_load() {
    // What a replica is remembered to hold plays no part for a request without a prefix there: only readiness and load do.
    let request = features(None, Some(root(5)));
    let with_memory = run(&request, Seen::default(), &fleet(&[Some(1), None]));
    assert_eq!(with_memory.candidates, [id(0)]);
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

fn request() -> impl Strategy<Value = Features> {
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
        let mut candidates = decision.candidates.clone();
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
    fn a_held_pin_survives_whatever_leaves_its_replica_ready(
        number in 0..8u32, root in prop::option::of((0..8u32).prop_map(root)), seen in seen(), loads in loads(),
    ) {
        let decision = run(&features(Some(session(number)), root), seen, &fleet(&loads));
        let held = seen.pin.filter(|pin| decision.candidates.contains(pin));
        if let Some(pin) = held {
            prop_assert_eq!(decision.candidates[0], pin);
            prop_assert_eq!((decision.reason, decision.pin), (Reason::PinHeld, PinAction::Refresh));
        } else {
            prop_assert_ne!(decision.reason, Reason::PinHeld);
        }
    }

    #[test]
    fn a_replica_that_leaves_moves_only_its_own_sessions_each_to_its_second_choice(
        request in request(), count in 2..5usize, gone in any::<prop::sample::Index>(),
    ) {
        let gone = gone.index(count);
        let before = run(&request, Seen::default(), &fleet(&vec![Some(0); count]));
        let mut loads = vec![Some(0); count];
        loads[gone] = None;
        let after = run(&request, Seen::default(), &fleet(&loads));
        let expect: Vec<_> = before.candidates.into_iter().filter(|c| *c != id(gone)).collect();
        prop_assert_eq!(after.candidates, expect);
    }

    #[test]
    fn a_new_session_goes_to_a_replica_under_the_bound_and_home_while_that_is(
        request in request(), loads in loads(), bound in 1_000..2_000u32,
    ) {
        let request = Features { root: request.root.or(Some(root(9))), ..request };
        let mut policy = Policy::default();
        policy.placement.load_bound = LoadBound::from_thousandths(bound);
        let replicas = fleet(&loads);
        let decision = decide(&policy, &request, Seen::default(), &replicas);
        if decision.reason == Reason::NoneReady {
            return Ok(());
        }
        let ready: Vec<_> = replicas.iter().filter(|r| r.ready).collect();
        let total: u64 = ready.iter().map(|r| u64::from(r.in_flight)).sum();
        let capacity = policy.placement.load_bound.capacity(total, ready.len() as u64);
        let load = |id| ready.iter().find(|r| r.id == id).map(|r| u64::from(r.in_flight));
        prop_assert!(load(decision.candidates[0]).unwrap() < capacity);
        let idle: Vec<_> = loads.iter().map(|load| load.map(|_| 0)).collect();
        let home = run(&request, Seen::default(), &fleet(&idle)).candidates[0];
        let home_has_room = load(home).unwrap() < capacity;
        prop_assert_eq!(decision.candidates[0] == home, home_has_room);
        let full = matches!(decision.reason, Reason::SessionHomeFull | Reason::PrefixHomeFull);
        prop_assert_eq!(full, !home_has_room);
    }

    #[test]
    fn without_anything_to_recognise_by_the_least_loaded_is_first(seen in seen(), loads in loads()) {
        let replicas = fleet(&loads);
        let decision = run(&features(None, None), seen, &replicas);
        let least = replicas.iter().filter(|r| r.ready).map(|r| r.in_flight).min();
        let first = decision.candidates.first().map(|first| {
            replicas.iter().find(|r| r.id == *first).unwrap().in_flight
        });
        prop_assert_eq!(first, least);
    }
}
