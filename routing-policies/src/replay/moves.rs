//! What a new policy would move: asked turn by turn, with the memory that the running policy has built up.

use std::collections::BTreeSet;

use super::{Event, Placement, Request, Ruled, Served, Setup, Sight, run};
use crate::policy::Policy;

/// What a change of policy comes to in one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// Requests of the trace.
    pub requests: usize,
    /// Of them, those that the new policy would have sent to another replica than the old one did.
    pub requests_moved: usize,
    /// Sessions of the trace.
    pub sessions: usize,
    /// Of them, those of which a turn after the first would have gone to another replica than the old policy sent it to.
    pub sessions_moved: usize,
}

/// Replays under `old` and asks `new` before each request where it would go. Both know the same at each request, so nothing that
/// follows from an earlier difference counts.
#[must_use]
pub fn moves(setup: &Setup, requests: &[Request], old: &Policy, new: &Policy, seed: u64) -> Moves {
    let mut watched = Watched {
        ruled: Ruled::new(setup, old.placement.settings, seed),
        new,
        seen: BTreeSet::new(),
        moved: BTreeSet::new(),
        requests_moved: 0,
    };
    run(setup, requests, &mut watched);
    Moves {
        requests: requests.len(),
        requests_moved: watched.requests_moved,
        sessions: watched.seen.len(),
        sessions_moved: watched.moved.len(),
    }
}

struct Watched<'p> {
    ruled: Ruled,
    new: &'p Policy,
    seen: BTreeSet<u64>,
    moved: BTreeSet<u64>,
    requests_moved: usize,
}

impl Placement for Watched<'_> {
    fn pick(&mut self, place: usize, request: &Request, sight: Sight<'_>) -> usize {
        let old = self.ruled.pick(place, request, sight);
        let new = self
            .ruled
            .choice(&self.new.placement.settings, request, sight);
        let first_turn = self.seen.insert(request.session);
        if old != new {
            self.requests_moved += 1;
            if !first_turn {
                self.moved.insert(request.session);
            }
        }
        old
    }

    fn routed(&mut self, place: usize, request: &Request, replica: usize) {
        self.ruled.routed(place, request, replica);
    }

    fn first_token(&mut self, event: Event, request: &Request, served: Served) {
        self.ruled.first_token(event, request, served);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Block;

    /// Turns of three sessions that all come at once, so that a policy that minds queues moves them.
    fn trace() -> Vec<Request> {
        let request = |place: u64| Request {
            at_s: place as f64 / 10.0,
            prompt_tokens: 1_000,
            output_tokens: 100,
            session: place % 3,
            blocks: (0..10)
                .map(|part| Block {
                    key: place % 3 * 100 + part,
                    tokens: 100,
                })
                .collect(),
        };
        (0..30).map(request).collect()
    }

    #[test]
    fn the_same_policy_moves_nobody_and_another_does() {
        let setup = Setup {
            replicas: 2,
            cache_tokens: 100_000,
            block_tokens: 100,
            offered_load: 0.9,
        };
        let mut old = Policy::default();
        old.placement.settings.stay = 100.0;
        let same = moves(&setup, &trace(), &old, &old, 1);
        assert_eq!((same.requests, same.sessions), (30, 3));
        assert_eq!((same.requests_moved, same.sessions_moved), (0, 0));
        let mut new = old.clone();
        new.placement.settings.stay = 0.0;
        new.placement.settings.in_flight = 10.0;
        let other = moves(&setup, &trace(), &old, &new, 1);
        assert!(
            other.requests_moved > 0 && other.sessions_moved > 0,
            "{other:?}"
        );
        assert!(other.sessions_moved <= 3 && other.requests_moved <= 30);
    }
}
