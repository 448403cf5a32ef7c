use super::*;
use crate::key::{PlacementKey, SessionKey};
use crate::placement::Block;
use proptest::prelude::*;

const REPLICAS: [&str; 3] = ["a", "b", "c"];
const CACHE_TOKENS: u64 = 10_000;

fn id(name: &str) -> ReplicaId {
    ReplicaId::of(name)
}

fn key(session: u8) -> PlacementKey {
    SessionKey::of(&[&[session]]).into()
}

/// Blocks of 100 tokens.
fn prompt(keys: &[u64]) -> Vec<Block> {
    let block = |&key| Block { key, tokens: 100 };
    keys.iter().map(block).collect()
}

fn ask(blocks: &[Block]) -> Ask<'_> {
    Ask {
        prompt_tokens: blocks.iter().map(|b| b.tokens).sum(),
        blocks,
        new_conversation: false,
        home: None,
        key: key(0),
    }
}

fn view(name: &str) -> ReplicaView {
    ReplicaView {
        id: id(name),
        ready: true,
        in_flight: 0,
    }
}

fn fleet() -> State {
    let mut state = State::default();
    for name in REPLICAS {
        assert!(state.join(id(name), CACHE_TOKENS));
    }
    state
}

/// After `sends` of (replica, blocks) at time 0, a request of `blocks` goes to `expect` one second later.
#[track_caller]
fn check(sends: &[(&str, &[u64])], blocks: &[u64], settings: Settings, expect: &str) {
    let mut state = fleet();
    for (number, (replica, blocks)) in sends.iter().enumerate() {
        let blocks = prompt(blocks);
        state.sent(number as u64, id(replica), &ask(&blocks), 0.0);
        state.first_token(number as u64, id(replica), 0.5);
    }
    let blocks = prompt(blocks);
    let ranked = rank(&settings, &state, &ask(&blocks), &REPLICAS.map(view), 1.0);
    assert_eq!(ranked[0].replica, id(expect), "{ranked:#?}");
}

#[test]
fn the_replica_that_holds_the_prefix_is_first() {
    for name in REPLICAS {
        check(
            &[(name, &[1, 2, 3])],
            &[1, 2, 3, 4],
            Settings::default(),
            name,
        );
    }
}

#[test]
fn the_longer_prefix_wins() {
    let sends: [(&str, &[u64]); 2] = [("a", &[1, 2]), ("b", &[1, 2, 3])];
    check(&sends, &[1, 2, 3, 4], Settings::default(), "b");
}

#[test]
fn a_long_queue_outweighs_a_short_prefix() {
    let mut state = fleet();
    let long: Vec<u64> = (100..180).collect();
    let (shared, long) = (prompt(&[1]), prompt(&long));
    state.sent(0, id("a"), &ask(&shared), 0.0);
    state.first_token(0, id("a"), 0.01);
    state.sent(1, id("a"), &ask(&long), 0.02);
    let asked = prompt(&[1, 2]);
    let order = |now_s| {
        let ranked = rank(
            &Settings::default(),
            &state,
            &ask(&asked),
            &REPLICAS.map(view),
            now_s,
        );
        ranked[0].replica
    };
    assert_ne!(order(0.02), id("a"), "8,000 tokens wait there");
    assert_eq!(order(10.0), id("a"), "they must be done by now");
}

#[test]
fn a_block_that_all_conversations_begin_with_draws_nobody() {
    let mut state = fleet();
    for number in 0..100 {
        let blocks = prompt(&[1, 2, 100 + number]);
        let asked = Ask {
            new_conversation: true,
            ..ask(&blocks)
        };
        state.sent(number, id("a"), &asked, number as f64);
        state.first_token(number, id("a"), number as f64 + 0.1);
    }
    let blocks = prompt(&[1, 2, 999]);
    let views = REPLICAS.map(|name| ReplicaView {
        in_flight: u32::from(name == "a"),
        ..view(name)
    });
    let ranked = rank(&Settings::default(), &state, &ask(&blocks), &views, 200.0);
    assert_eq!(
        ranked[2].replica,
        id("a"),
        "one request in flight outweighs the prompt"
    );
    assert_eq!(ranked[2].held_tokens, 200);
}

#[test]
fn a_session_stays_unless_enough_time_is_saved() {
    let blocks = prompt(&[7]);
    let asked = Ask {
        home: Some(id(REPLICAS[0])),
        ..ask(&blocks)
    };
    let leave_s = |leave_s_min| {
        let settings = Settings {
            stay: 0.0,
            leave_s_min,
            ..Settings::default()
        };
        let ranked = rank(&settings, &fleet(), &asked, &REPLICAS.map(view), 0.0);
        let of = |home: bool| {
            let found = ranked
                .iter()
                .find(|r| (Some(r.replica) == asked.home) == home);
            found.unwrap().cost.leave_s
        };
        (of(true), of(false))
    };
    assert_eq!(leave_s(0.25), (0.0, 0.25));
    assert_eq!(leave_s(0.0), (0.0, 0.0));
}

#[test]
fn a_session_stays_unless_another_replica_is_cheaper_by_the_margin() {
    let settings = Settings {
        stay: 1.0,
        ..Settings::default()
    };
    let blocks = prompt(&[7]);
    for home in REPLICAS {
        let asked = Ask {
            home: Some(id(home)),
            ..ask(&blocks)
        };
        let ranked = rank(&settings, &fleet(), &asked, &REPLICAS.map(view), 0.0);
        assert_eq!(ranked[0].replica, id(home));
    }
}

#[test]
fn who_left_is_cold_and_idle_again() {
    let mut state = fleet();
    let blocks = prompt(&[1, 2, 3]);
    state.sent(0, id("a"), &ask(&blocks), 0.0);
    state.leave(id("a"));
    let ranked = rank(
        &Settings::default(),
        &state,
        &ask(&blocks),
        &[view("a")],
        0.0,
    );
    assert_eq!((ranked[0].held_tokens, ranked[0].cost.wait_s), (0, 0.0));
    assert!(state.join(id("a"), CACHE_TOKENS));
    let ranked = rank(
        &Settings::default(),
        &state,
        &ask(&blocks),
        &[view("a")],
        0.0,
    );
    assert_eq!((ranked[0].held_tokens, ranked[0].cost.wait_s), (0, 0.0));
}

#[test]
fn what_no_longer_fits_the_cache_is_not_believed() {
    let mut state = fleet();
    let blocks = prompt(&[1, 2, 3]);
    state.sent(0, id("a"), &ask(&blocks), 0.0);
    state.join(id("a"), 200);
    let ranked = rank(
        &Settings::default(),
        &state,
        &ask(&blocks),
        &[view("a")],
        0.0,
    );
    assert_eq!(ranked[0].held_tokens, 200, "the deepest block went first");
}

/// One thing that happens to a gateway.
#[derive(Clone, Debug)]
enum Step {
    Send(usize, Vec<u64>, bool),
    First(usize),
    Gone(usize),
    Leave(usize),
    Join(usize, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let blocks = || prop::collection::vec(0u64..5, 0..5);
    let step = prop_oneof![
        4 => (0usize..3, blocks(), any::<bool>()).prop_map(|(r, b, new)| Step::Send(r, b, new)),
        3 => (0usize..3).prop_map(Step::First),
        1 => (0usize..3).prop_map(Step::Gone),
        1 => (0usize..3).prop_map(Step::Leave),
        1 => (0usize..3, 0u64..600).prop_map(|(r, size)| Step::Join(r, size)),
    ];
    prop::collection::vec(step, 0..40)
}

/// Plays `steps`, a tenth of a second apart. First tokens and ends are of the latest send, whether or not it went to that replica.
fn played(steps: &[Step]) -> (State, f64) {
    let mut state = fleet();
    let (mut now_s, mut sent) = (0.0, 0);
    for step in steps {
        now_s += 0.1;
        match step {
            Step::Send(replica, blocks, new_conversation) => {
                sent += 1;
                let blocks = prompt(blocks);
                let asked = Ask {
                    new_conversation: *new_conversation,
                    ..ask(&blocks)
                };
                let held = state.sent(sent, id(REPLICAS[*replica]), &asked, now_s);
                assert!(
                    held.most_tokens <= asked.prompt_tokens && held.here_tokens <= held.most_tokens
                );
            }
            Step::First(replica) => state.first_token(sent, id(REPLICAS[*replica]), now_s),
            Step::Gone(replica) => state.gone(sent, id(REPLICAS[*replica])),
            Step::Leave(replica) => state.leave(id(REPLICAS[*replica])),
            Step::Join(replica, size) => assert!(state.join(id(REPLICAS[*replica]), *size)),
        }
    }
    (state, now_s)
}

proptest! {
    #[test]
    fn the_order_is_of_every_ready_replica_once_and_however_they_come(
        steps in steps(),
        blocks in prop::collection::vec(0u64..5, 0..5),
        ready in prop::array::uniform3(any::<bool>()),
        in_flight in prop::array::uniform3(0u32..3),
        session in any::<u8>(),
        home in prop::option::of(0usize..3),
    ) {
        let (state, now_s) = played(&steps);
        let blocks = prompt(&blocks);
        let asked = Ask { key: key(session), home: home.map(|h| id(REPLICAS[h])), ..ask(&blocks) };
        let views: Vec<ReplicaView> = (0..3)
            .map(|r| ReplicaView { id: id(REPLICAS[r]), ready: ready[r], in_flight: in_flight[r] })
            .collect();
        let settings = Settings::default();
        let ranked = rank(&settings, &state, &asked, &views, now_s);

        let mut got: Vec<ReplicaId> = ranked.iter().map(|r| r.replica).collect();
        let turned: Vec<ReplicaView> = views.iter().rev().chain(&views).copied().collect();
        prop_assert_eq!(&rank(&settings, &state, &asked, &turned, now_s), &ranked);
        for pair in ranked.windows(2) {
            prop_assert!(pair[0].cost.total_s() <= pair[1].cost.total_s());
        }
        for r in &ranked {
            let Cost { wait_s, prefill_s, crowding_s, in_flight_s, leave_s } = r.cost;
            for part in [wait_s, prefill_s, crowding_s, in_flight_s, leave_s] {
                prop_assert!(part.is_finite() && part >= 0.0, "{:?}", r.cost);
            }
            prop_assert!(r.held_tokens <= asked.prompt_tokens);
        }
        let mut expect: Vec<ReplicaId> = views.iter().filter(|v| v.ready).map(|v| v.id).collect();
        got.sort();
        expect.sort();
        prop_assert_eq!(got, expect);
    }
}
