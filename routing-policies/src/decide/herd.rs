//! Sessions, turn by turn, through the decision with all its memory: where they gather and where they return.

use std::collections::HashMap;

use super::*;
use crate::prefix::{Chain, Message, Scope, chain};

const BYTES_PER_TOKEN: f64 = 4.0;
const SCOPE: Scope<'static> = Scope {
    tenant: "",
    model: "m",
    salt: None,
    effort: None,
};
/// Arrivals a second; each answer takes a second.
const RATE: f64 = 20.0;

/// A turn of a conversation: a system prompt of about 3,000 tokens shared by all, then the user's and the assistant's messages.
fn turn(session: u32, turns: u32) -> Chain {
    let system = format!(
        r#"{{"role":"system","content":"{}"}}"#,
        "long ".repeat(2_400)
    );
    let mut messages = vec![(system, false)];
    for turn in 0..turns {
        messages.push((
            format!("user {session} {turn} {}", "own ".repeat(200)),
            true,
        ));
        messages.push((format!("assistant {session} {turn}"), false));
    }
    messages.pop();
    let messages = messages.iter().map(|(bytes, is_user)| Message {
        bytes: bytes.as_bytes(),
        is_user: *is_user,
    });
    chain(&SCOPE, b"", messages, 2_048)
}

/// What the gateway's shell keeps, in small.
struct Shell {
    state: State,
    ids: Vec<ReplicaId>,
    homes: HashMap<PrefixKey, ReplicaId>,
    open: Vec<ReplicaId>,
    sent: u64,
    dead: Option<ReplicaId>,
}

impl Shell {
    fn new(replicas: usize) -> Self {
        let ids: Vec<_> = (0..replicas)
            .map(|index| ReplicaId::of(&format!("replica-{index}")))
            .collect();
        let mut state = State::default();
        ids.iter()
            .for_each(|id| assert!(state.join(*id, 1_000_000)));
        Self {
            state,
            ids,
            homes: HashMap::new(),
            open: Vec::new(),
            sent: 0,
            dead: None,
        }
    }

    /// A request that gets its first token 20 ms later, while twenty are open.
    fn route(&mut self, chain: &Chain) -> ReplicaId {
        let (number, now_s) = (self.sent, self.sent as f64 / RATE);
        let replica = self.place(chain, now_s);
        self.state.first_token(number, replica, now_s + 0.02);
        self.open.push(replica);
        if self.open.len() > RATE as usize {
            self.open.remove(0);
        }
        replica
    }

    fn place(&mut self, chain: &Chain, now_s: f64) -> ReplicaId {
        let deepest = chain.deepest(|key| self.homes.get(&key).copied());
        let prefix = deepest.map(|(messages, replica)| PrefixSeen {
            replica,
            whole: messages == chain.keys().len(),
        });
        let view = |id: &ReplicaId| ReplicaView {
            id: *id,
            ready: self.dead != Some(*id),
            in_flight: self.open.iter().filter(|open| *open == id).count() as u32,
        };
        let views: Vec<_> = self.ids.iter().map(view).collect();
        let blocks = chain.blocks(BYTES_PER_TOKEN);
        let request = Features {
            session: None,
            root: Some(chain.root()),
            body: PlacementKey::of_body(b""),
            prompt_tokens: chain.tokens(BYTES_PER_TOKEN),
            blocks: &blocks,
        };
        let seen = Seen { pin: None, prefix };
        let policy = Policy::default();
        let decision = decide(&policy, &request, seen, &self.state, &views, now_s);
        let replica = decision.candidates[0].replica;
        self.state
            .sent(self.sent, replica, &request.ask(&policy, seen), now_s);
        self.homes
            .insert(chain.keys().last().copied().unwrap(), replica);
        self.sent += 1;
        replica
    }
}

#[test]
fn rc_072_a_shared_system_prompt_does_not_herd_sessions_onto_one_replica() {
    let mut shell = Shell::new(4);
    let first: Vec<_> = (0..400)
        .map(|session| shell.route(&turn(session, 1)))
        .collect();
    let second: Vec<_> = (0..400)
        .map(|session| shell.route(&turn(session, 2)))
        .collect();
    for id in &shell.ids {
        let share = first.iter().filter(|replica| *replica == id).count();
        assert!(share <= 150, "{share} of 400 at one of four");
    }
    let returned = first
        .iter()
        .zip(&second)
        .filter(|(one, two)| one == two)
        .count();
    assert!(returned >= 380, "{returned} of 400 second turns returned");
}

#[test]
fn sessions_that_come_one_by_one_to_an_idle_fleet_spread_though_they_begin_alike() {
    let mut shell = Shell::new(4);
    let homes: Vec<_> = (0..200)
        .map(|session| {
            let home = shell.route(&turn(session, 1));
            shell.open.clear();
            home
        })
        .collect();
    for id in &shell.ids {
        let share = homes.iter().filter(|home| *home == id).count();
        assert!((30..=75).contains(&share), "{share} of 200 at one of four");
    }
}

/// 32 sessions of 8 turns, 32 KB a turn, in lockstep against replicas that answer everything within 20 ms whatever its length.
#[test]
fn concurrent_sessions_stay_and_are_even_on_replicas_that_never_queue() {
    const SESSIONS: usize = 32;
    for shared in ["", "the system prompt of all ".repeat(330).as_str()] {
        let mut shell = Shell::new(4);
        let mut texts: Vec<Vec<String>> = vec![vec![format!("s{shared}")]; SESSIONS];
        let mut homes: Vec<Option<ReplicaId>> = vec![None; SESSIONS];
        let (mut stayed, mut later) = (0, 0);
        let mut counts: HashMap<ReplicaId, usize> = HashMap::new();
        for round in 0..8 {
            let start_s = f64::from(round) * 0.05;
            let mut sent = Vec::new();
            for (session, text) in texts.iter_mut().enumerate() {
                text.push(format!("user {session} {round} ").repeat(2_500));
                let messages = text.iter().map(|text| Message {
                    bytes: text.as_bytes(),
                    is_user: text.starts_with('u'),
                });
                let chain = chain(&SCOPE, b"", messages, 2_048);
                text.push("a".into());
                let now_s = start_s + session as f64 * 0.0005;
                let number = shell.sent;
                let replica = shell.place(&chain, now_s);
                shell.open.push(replica);
                sent.push((number, replica, now_s + 0.02));
                *counts.entry(replica).or_default() += 1;
                if let Some(home) = homes[session] {
                    later += 1;
                    stayed += usize::from(home == replica);
                }
                homes[session].get_or_insert(replica);
            }
            for (number, replica, at_s) in sent {
                shell.state.first_token(number, replica, at_s);
            }
            shell.open.clear();
        }
        let hottest =
            counts.values().max().copied().unwrap_or(0) as f64 / (SESSIONS as f64 * 8.0 / 4.0);
        assert!(
            stayed == later,
            "{stayed} of {later} stayed, hottest {hottest}"
        );
        assert!(hottest <= 1.1, "{hottest}");
    }
}

#[test]
fn one_of_eight_dies_and_only_its_sessions_move_evenly() {
    const SESSIONS: usize = 400;
    let mut shell = Shell::new(8);
    let round = |shell: &mut Shell, turns| -> Vec<ReplicaId> {
        (0..SESSIONS as u32)
            .map(|session| shell.route(&turn(session, turns)))
            .collect()
    };
    let before = round(&mut shell, 1);
    let dead = before[0];
    shell.dead = Some(dead);
    shell.state.leave(dead);
    let without = round(&mut shell, 2);
    let mut took: HashMap<ReplicaId, usize> = HashMap::new();
    for (before, after) in before.iter().zip(&without) {
        if *before == dead {
            *took.entry(*after).or_default() += 1;
        } else {
            assert_eq!(before, after, "its replica is there");
        }
    }
    let moved: usize = took.values().sum();
    assert!((35..=65).contains(&moved), "{moved} of {SESSIONS} moved");
    assert_eq!(took.len(), 7, "all others took some");
    assert!(took.values().all(|took| *took <= moved / 3), "{took:?}");
    // It is back with nothing in its cache: what moved stays where its prefix lies now.
    shell.dead = None;
    shell.state.join(dead, 1_000_000);
    assert_eq!(round(&mut shell, 3), without);
}
