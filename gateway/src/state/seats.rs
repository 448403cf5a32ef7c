//! How many requests each session has in flight, for the policy's limit on it.

use std::hash::BuildHasherDefault;
use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use routing_policies::SessionKey;

use super::memory::FirstWord;

/// Counts by session. An entry lives as long as a request of its session, so `limits.in_flight_max` of the gateway's configuration bounds
/// how many there are.
#[derive(Debug, Default)]
pub struct Seats {
    taken: DashMap<SessionKey, u32, BuildHasherDefault<FirstWord>>,
}

impl Seats {
    /// One more request of `session`; `None` where `most` are in flight. 0 takes none at all.
    #[must_use]
    pub fn take(self: &Arc<Self>, session: SessionKey, most: u32) -> Option<Seat> {
        match self.taken.entry(session) {
            Entry::Occupied(entry) if *entry.get() >= most => return None,
            Entry::Occupied(mut entry) => *entry.get_mut() += 1,
            Entry::Vacant(_) if most == 0 => return None,
            Entry::Vacant(entry) => {
                entry.insert(1);
            }
        }
        Some(Seat {
            seats: self.clone(),
            session,
        })
    }

    /// Whether no request of any session is counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }
}

/// Counts a request of a session for as long as it lives. It rides in the body of the answer, so every ending takes it back.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    session: SessionKey,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.seats.taken.entry(self.session) {
            match entry.get_mut() {
                1 => {
                    entry.remove();
                }
                taken => *taken -= 1,
            }
        }
    }
}
