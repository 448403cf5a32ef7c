//! What each replica has taken over lately of sessions whose own replica is gone, so that the next of them goes to another.

/// Seconds after which a takeover counts half beside one that comes then: about as long as the sessions of a dead replica take to
/// come back. What is much older says nothing of the load that a new death brings.
const HALF_S: f64 = 60.0;

/// Per slot the prompt tokens that it had to prefill for such sessions, old ones at a discount.
#[derive(Clone, Debug, Default)]
pub(super) struct Heirs {
    tokens: Vec<f64>,
    /// When the last was added. All age together, so their order changes only when one is added or cleared.
    at_s: f64,
}

impl Heirs {
    /// A session of `tokens` to prefill went to `slot`.
    pub(super) fn add(&mut self, slot: usize, tokens: u32, now_s: f64) {
        // A quotient, since powers are not the same to the last bit on every machine.
        let kept = 1.0 / (1.0 + (now_s - self.at_s).max(0.0) / HALF_S);
        self.at_s = now_s.max(self.at_s);
        if self.tokens.len() <= slot {
            self.tokens.resize(slot + 1, 0.0);
        }
        for tokens in &mut self.tokens {
            *tokens *= kept;
        }
        self.tokens[slot] += f64::from(tokens);
    }

    /// What `slot` has taken over, in tokens.
    pub(super) fn tokens(&self, slot: usize) -> f64 {
        self.tokens.get(slot).copied().unwrap_or(0.0)
    }

    /// The replica of `slot` has lost all that it took over.
    pub(super) fn clear(&mut self, slot: usize) {
        if let Some(tokens) = self.tokens.get_mut(slot) {
            *tokens = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takeovers_are_halved_by_a_minute_and_cleared_alone() {
        let mut heirs = Heirs::default();
        heirs.add(0, 400, 10.0);
        heirs.add(2, 100, 10.0 + HALF_S);
        let tokens = [0, 1, 2, 9].map(|slot| heirs.tokens(slot));
        assert_eq!(tokens, [200.0, 0.0, 100.0, 0.0]);
        heirs.clear(0);
        heirs.clear(7);
        assert_eq!([0, 2].map(|slot| heirs.tokens(slot)), [0.0, 100.0]);
        // A clock that stands makes nothing older.
        heirs.add(1, 50, 0.0);
        assert_eq!([1, 2].map(|slot| heirs.tokens(slot)), [50.0, 100.0]);
    }
}
