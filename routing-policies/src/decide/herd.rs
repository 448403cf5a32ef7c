//! Sessions, turn by turn, through the decision with all its memory: where they gather and where they return.

use std::collections::HashMap;

use super::*;
use crate::prefix::{Chain, Message, chain};

const REPLICAS: u32 = 4;
const BYTES_PER_TOKEN: f64 = 4.0;
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
    chain("", "m", None, b"", messages, 2_048)
}

/// What the gateway's shell keeps, in small.
struct Shell {
    state: State,
    ids: Vec<ReplicaId>,
    homes: HashMap<PrefixKey, ReplicaId>,
    open: Vec<ReplicaId>,
    sent: u64,
}

impl Shell {
    fn new() -> Self {
        let ids: Vec<_> = (0..REPLICAS)
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
        }
    }

    fn route(&mut self, chain: &Chain) -> ReplicaId {
        let now_s = self.sent as f64 / RATE;
        let deepest = chain.deepest(|key| self.homes.get(&key).copied());
        let prefix = deepest.map(|(messages, replica)| PrefixSeen {
            replica,
            whole: messages == chain.keys().len(),
        });
        let view = |id: &ReplicaId| ReplicaView {
            id: *id,
            ready: true,
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
        self.state.first_token(self.sent, replica, now_s + 0.02);
        self.homes
            .insert(chain.keys().last().copied().unwrap(), replica);
        self.open.push(replica);
        if self.open.len() > RATE as usize {
            self.open.remove(0);
        }
        self.sent += 1;
        replica
    }
}

#[test]
fn rc_072_a_shared_system_prompt_does_not_herd_sessions_onto_one_replica() {
    let mut shell = Shell::new();
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
