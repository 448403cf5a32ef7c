//! A policy as the gateway runs it: checked, complete, ready to decide with.

use crate::lanes::Lanes;
use crate::models::Models;
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
    /// Which replicas a request may go to at all.
    pub lanes: Lanes,
    /// What is shown of the models' reasoning.
    pub models: Models,
    /// What is refused.
    pub limits: LimitsPolicy,
    /// How rules see the difficulty of a turn.
    pub difficulty: DifficultyPolicy,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixPolicy {
    /// Bytes of a request per remembered block.
    pub block_bytes: u32,
    /// Tokens that a replica's prefix cache holds, where the replica does not say.
    pub cache_tokens: u32,
    /// Whether tools go out with the keys of their objects in one order.
    pub canonical_tools: bool,
    /// Whether that goes for the names of a schema's properties too.
    pub sort_properties: bool,
    /// Models, beyond the known families, whose prompt begins with the reasoning effort.
    pub effort_in_head: Vec<String>,
}

/// The section `[placement]`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlacementPolicy {
    /// What the cost of each replica weighs by.
    pub settings: Settings,
}

/// The section `[limits]`. In both, 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitsPolicy {
    /// Requests of one named session that may be in flight at a time, per gateway.
    pub in_flight_per_session: u32,
    /// Bytes that a request's tools and messages may have together, as the client wrote them.
    pub prompt_bytes_max: u32,
}

/// The section `[difficulty]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DifficultyPolicy {
    /// By how much a turn's difficulty has to differ from that of an earlier turn of its session for rules to see it, from 0 to 1.
    pub margin: f64,
}

impl Default for DifficultyPolicy {
    fn default() -> Self {
        Self { margin: 0.1 }
    }
}

impl SessionPolicy {
    /// Whether anything that a request brings can name its session.
    #[must_use]
    pub fn names_any(&self) -> bool {
        self.agents || !self.headers.is_empty() || !self.body.is_empty()
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
            canonical_tools: false,
            sort_properties: false,
            effort_in_head: Vec::new(),
        }
    }
}
