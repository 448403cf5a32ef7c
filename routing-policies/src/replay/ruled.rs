//! This crate's own placement rule, replayed.

use std::collections::HashMap;

use super::{Event, Placement, Request, Served, Setup, Sight};
use crate::decide::ReplicaView;
use crate::key::{PlacementKey, ReplicaId, SessionKey};
use crate::placement::{Ask, Settings, State, rank};

/// [`rank`] with the state that a gateway would have: it sees requests, first tokens and requests in flight, nothing of the engines.
#[derive(Debug)]
pub struct Ruled {
    settings: Settings,
    state: State,
    ids: Vec<ReplicaId>,
    homes: HashMap<u64, usize>,
    salt: u64,
    now_s: f64,
}

impl Ruled {
    /// With replicas whose cache sizes are known and which are called by their number. `salt` goes into tie-breaking and nothing else:
    /// replays that differ in it show how much of a result is chance.
    #[must_use]
    pub fn new(setup: &Setup, settings: Settings, salt: u64) -> Self {
        let name = |replica| ReplicaId::of(&format!("replica-{replica}"));
        let ids: Vec<ReplicaId> = (0..setup.replicas).map(name).collect();
        let mut state = State::default();
        for &id in &ids {
            state.join(id, setup.cache_capacity());
        }
        Self {
            settings,
            state,
            ids,
            homes: HashMap::new(),
            salt,
            now_s: 0.0,
        }
    }

    fn ask<'r>(&self, request: &'r Request) -> Ask<'r> {
        let home = self.homes.get(&request.session);
        let fields = [self.salt.to_le_bytes(), request.session.to_le_bytes()];
        Ask {
            prompt_tokens: request.prompt_tokens,
            blocks: &request.blocks,
            new_conversation: home.is_none(),
            home: home.map(|&replica| self.ids[replica]),
            key: PlacementKey::from(SessionKey::of(&[&fields[0], &fields[1]])),
        }
    }
}

impl Ruled {
    /// Where `settings` would send `request`, from the memory of this one.
    pub(super) fn choice(&self, settings: &Settings, request: &Request, sight: Sight<'_>) -> usize {
        let view = |(&id, &in_flight)| ReplicaView {
            id,
            ready: true,
            in_flight,
        };
        let views: Vec<ReplicaView> = self.ids.iter().zip(sight.in_flight()).map(view).collect();
        let ask = self.ask(request);
        let ranked = rank(settings, &self.state, &ask, &views, sight.now_s());
        let first = ranked.first().map(|ranked| ranked.replica);
        self.ids
            .iter()
            .position(|&id| Some(id) == first)
            .unwrap_or(0)
    }
}

impl Placement for Ruled {
    fn pick(&mut self, _: usize, request: &Request, sight: Sight<'_>) -> usize {
        self.now_s = sight.now_s();
        self.choice(&self.settings, request, sight)
    }

    fn routed(&mut self, place: usize, request: &Request, replica: usize) {
        let ask = self.ask(request);
        self.state
            .sent(place as u64, self.ids[replica], &ask, self.now_s);
        self.homes.insert(request.session, replica);
    }

    fn first_token(&mut self, event: Event, _: &Request, _: Served) {
        let replica = self.ids[event.replica];
        self.state
            .first_token(event.request as u64, replica, event.at_s);
    }
}
