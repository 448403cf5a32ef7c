//! Sessions whose replica is gone, and where they go.

use super::*;

const REPLICAS: usize = 8;
const ORPHANS: usize = 50;
const TOKENS: u32 = 1_500;
const VICTIM: usize = 3;

fn id(index: usize) -> ReplicaId {
    ReplicaId::of(&format!("replica-{index}"))
}

fn views() -> Vec<ReplicaView> {
    let view = |index| ReplicaView {
        id: id(index),
        ready: index != VICTIM,
        in_flight: 0,
    };
    (0..REPLICAS).map(view).collect()
}

fn state() -> State {
    let mut state = State::default();
    for index in 0..REPLICAS {
        assert!(state.join(id(index), 1_000_000));
    }
    state
}

/// Decides for session `number`, pinned to `pin`, with these blocks.
fn run(number: u32, pin: usize, blocks: &[Block], state: &State) -> Decision {
    let request = Features {
        session: Some(SessionKey::of(&[&number.to_le_bytes()])),
        root: None,
        body: PlacementKey::of_body(b""),
        prompt_tokens: TOKENS,
        blocks,
    };
    let seen = Seen {
        pin: Some(id(pin)),
        prefix: None,
    };
    decide(&Policy::default(), &request, seen, state, &views(), 0.0)
}

#[test]
fn a_dead_replica_s_sessions_are_dealt_out_evenly_one_after_another() {
    let mut state = state();
    let mut heirs = [0; REPLICAS];
    for number in 0..ORPHANS as u32 {
        let decision = run(number, VICTIM, &[], &state);
        assert_eq!(decision.reason, Reason::PinBrokenGone);
        let first = decision.candidates[0].replica;
        assert_eq!(decision.candidates.len(), REPLICAS - 1);
        state.took_over(first, TOKENS, f64::from(number) / 100.0);
        heirs[(0..REPLICAS).find(|index| id(*index) == first).unwrap()] += 1;
    }
    let living = || (0..REPLICAS).filter(|index| *index != VICTIM);
    let most = living().map(|index| heirs[index]).max();
    let least = living().map(|index| heirs[index]).min();
    assert_eq!((heirs[VICTIM], least, most), (0, Some(7), Some(8)));
    // Whose replica lives stays, whatever that took over.
    for index in living() {
        state.took_over(id(index), 1_000_000, 1.0);
        let decision = run(99, index, &[], &state);
        assert_eq!(decision.reason, Reason::PinHeld);
        assert_eq!(decision.candidates[0].replica, id(index));
    }
}

#[test]
fn evenness_gives_way_to_a_long_queue_and_to_what_a_replica_holds() {
    const HELD: &[Block] = &[Block {
        key: 7,
        tokens: TOKENS,
    }];
    let mut state = state();
    for index in 0..REPLICAS {
        // Replica 0 has taken over least.
        state.took_over(id(index), 1 + index as u32, 0.0);
    }
    let first = |state: &State| run(1, VICTIM, HELD, state).candidates[0].replica;
    assert_eq!(first(&state), id(0));
    let key = SessionKey::of(&[b"other"]).into();
    let ask = |blocks: &'static [Block], prompt_tokens| Ask {
        prompt_tokens,
        blocks,
        new_conversation: false,
        home: None,
        key,
    };
    state.sent(1, id(0), &ask(&[], 500_000), 0.0);
    assert_eq!(first(&state), id(1), "replica 0 is busy for long");
    let believed = state.sent(2, id(6), &ask(HELD, TOKENS), 0.0);
    assert_eq!(believed.here_tokens, 0);
    state.first_token(2, id(6), 0.1);
    assert_eq!(first(&state), id(6), "it holds the prompt");
}
