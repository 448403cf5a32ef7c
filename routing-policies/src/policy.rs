//! A policy as the gateway runs it: checked, complete, ready to decide with.

use crate::placement::Settings;

/// Everything that a policy file says. Made by [`crate::compile`], or the default.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Policy {
    /// How a session is recognised, and how long its pin lasts.
    pub session: SessionPolicy,
    /// What is remembered of the prompts that each replica has seen.
    pub prefix: PrefixPolicy,
    /// Where a session goes that has no pin.
    pub placement: PlacementPolicy,
}

/// The section `[session]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPolicy {
    /// Headers that name a session, first one first, in lower case.
    pub headers: Vec<String>,
    /// Whether the headers of [`crate::session::AGENT_HEADERS`] name a session too.
    pub agents: bool,
    /// Body fields that name a session, first one first: names joined by dots. The shell looks them up and passes the strings
    /// in the same order to [`crate::session::identify`].
    pub body: Vec<String>,
    /// Whether a conversation without any name is recognised by its messages.
    pub infer: bool,
    /// Silence after which a pin is forgotten, in seconds.
    pub pin_ttl_seconds: u32,
    /// Pins remembered at once.
    pub pins_max: u32,
}

/// The section `[prefix]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixPolicy {
    /// Bytes of a request per remembered block.
    pub block_bytes: u32,
    /// Tokens that a replica's prefix cache holds, where the replica does not say.
    pub cache_tokens: u32,
}

/// The section `[placement]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacementPolicy {
    /// What the cost of each replica weighs by.
    pub settings: Settings,
    /// How far above the mean a replica may be loaded and still take a new session.
    pub load_bound: LoadBound,
}

/// A multiple of the mean load, at least 1, in thousandths: whole numbers decide alike on every host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoadBound(u32);

impl LoadBound {
    /// The least bound, 1.0: nobody above the mean takes a new session.
    pub const MIN: Self = Self(1_000);
    /// The greatest bound, 100.0.
    pub const MAX: Self = Self(100_000);

    /// The bound in thousandths.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// A bound in thousandths, moved into the allowed range.
    #[must_use]
    pub const fn from_thousandths(thousandths: u32) -> Self {
        if thousandths < Self::MIN.0 {
            Self::MIN
        } else if thousandths > Self::MAX.0 {
            Self::MAX
        } else {
            Self(thousandths)
        }
    }

    /// Most requests in flight on one replica, the new one among them, when `in_flight` requests run on `replicas` replicas:
    /// the bound times the mean that the new request makes, rounded up. Some replica is always within it.
    #[must_use]
    pub fn capacity(self, in_flight: u64, replicas: u64) -> u64 {
        let total = u128::from(in_flight) + 1;
        let capacity = (u128::from(self.0) * total).div_ceil(1_000 * u128::from(replicas.max(1)));
        u64::try_from(capacity).unwrap_or(u64::MAX)
    }
}

impl Default for SessionPolicy {
    fn default() -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            headers: owned(&[
                "x-session-id",
                "x-conversation-id",
                "x-smg-routing-key",
                "x-sgl-routing-key",
                "x-aibrix-session-key",
                "x-dynamo-session-id",
                "x-litellm-session-id",
            ]),
            agents: true,
            body: owned(&[
                "prompt_cache_key",
                "metadata.session_id",
                "session_id",
                "conversation",
                "previous_response_id",
            ]),
            infer: true,
            pin_ttl_seconds: 3_600,
            pins_max: 1_000_000,
        }
    }
}

impl Default for PrefixPolicy {
    fn default() -> Self {
        Self {
            block_bytes: 2_048,
            cache_tokens: 262_144,
        }
    }
}

impl Default for PlacementPolicy {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            load_bound: LoadBound::from_thousandths(1_250),
        }
    }
}

#[cfg(test)]
mod tests;
