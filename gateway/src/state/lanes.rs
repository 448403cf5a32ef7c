//! Which lane a session's last request took, and what its rules saw of the difficulty.

use std::time::Duration;

use super::memory::Memory;

/// Steps of difficulty, 0 to 1000, with one more for none. With the lane's place they fit a remembered value: 64 lanes at most.
const STEPS: u16 = 1_002;
/// The step that means none.
const NO_STEP: u16 = 1_001;

/// What is remembered of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The lane's place in the policy.
    pub lane: usize,
    /// What the rules saw; `None` where none asked.
    pub difficulty: Option<u16>,
}

/// The lanes of sessions. A key is a session's or a conversation's under one version of the policy.
#[derive(Debug)]
pub struct SessionLanes(Memory<u128>);

impl SessionLanes {
    /// Remembers so many sessions for so long.
    #[must_use]
    pub fn new(sessions_max: usize, ttl: Duration) -> Self {
        Self(Memory::new(sessions_max, ttl))
    }

    /// Fits it to new limits.
    pub fn limit(&self, sessions_max: usize, ttl: Duration) {
        self.0.limit(sessions_max, ttl);
    }

    /// What is remembered.
    #[must_use]
    pub fn get(&self, key: u128) -> Option<Held> {
        let value = self.0.get(&key)?;
        let step = value % STEPS;
        Some(Held {
            lane: usize::from(value / STEPS),
            difficulty: (step != NO_STEP).then_some(step),
        })
    }

    /// Remembers; a lane past those that a policy can have is not.
    pub fn put(&self, key: u128, held: Held) {
        let step = held.difficulty.unwrap_or(NO_STEP).min(NO_STEP);
        let lane = u16::try_from(held.lane).ok();
        let value = lane.and_then(|lane| lane.checked_mul(STEPS)?.checked_add(step));
        if let Some(value) = value {
            self.0.put(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_there() {
        let lanes = SessionLanes::new(8, Duration::from_secs(1));
        for held in [
            Held {
                lane: 0,
                difficulty: None,
            },
            Held {
                lane: 63,
                difficulty: Some(1_000),
            },
            Held {
                lane: 1,
                difficulty: Some(0),
            },
        ] {
            lanes.put(7, held);
            assert_eq!(lanes.get(7), Some(held));
        }
        lanes.put(
            8,
            Held {
                lane: 70,
                difficulty: None,
            },
        );
        assert_eq!(lanes.get(8), None);
    }
}
