//! Why a decision fell as it did: a label for metrics, a header for clients, a sentence for people.

/// Why the first candidate is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The session's pinned replica is ready.
    PinHeld,
    /// The session's pinned replica, or the one that served the start of this conversation, is ready but costs more by the policy's margin.
    PinMovedForLoad,
    /// The session's pinned replica, or the one that holds this conversation, is not ready.
    PinBrokenGone,
    /// The replica that served the start of this conversation.
    PrefixSeen,
    /// A named session without a pin: its first choice.
    SessionHome,
    /// A named session without a pin: another replica costs less than its first choice.
    SessionHomeFull,
    /// A conversation not seen before: its first choice.
    PrefixHome,
    /// A conversation not seen before: another replica costs less than its first choice.
    PrefixHomeFull,
    /// A session or conversation not seen before, on a replica that holds more of its text than its first choice does.
    PrefixShared,
    /// Nothing to recognise it by: the least loaded.
    Spread,
    /// No replica is ready.
    NoneReady,
}

impl Reason {
    /// All reasons, so that a metric can start each at zero.
    pub const ALL: [Self; 11] = [
        Self::PinHeld,
        Self::PinMovedForLoad,
        Self::PinBrokenGone,
        Self::PrefixSeen,
        Self::SessionHome,
        Self::SessionHomeFull,
        Self::PrefixHome,
        Self::PrefixHomeFull,
        Self::PrefixShared,
        Self::Spread,
        Self::NoneReady,
    ];

    /// The word for a label or header.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PinHeld => "pin_held",
            Self::PinMovedForLoad => "pin_moved_for_load",
            Self::PinBrokenGone => "pin_broken_gone",
            Self::PrefixSeen => "prefix_seen",
            Self::SessionHome => "session_home",
            Self::SessionHomeFull => "session_home_full",
            Self::PrefixHome => "prefix_home",
            Self::PrefixHomeFull => "prefix_home_full",
            Self::PrefixShared => "prefix_shared",
            Self::Spread => "spread",
            Self::NoneReady => "none_ready",
        }
    }

    /// The sentence for a person.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::PinHeld => {
                "the session is pinned to this replica, and no other costs less by the policy's margin"
            }
            Self::PinMovedForLoad => {
                "the replica that holds this session is so busy that this one will answer sooner, prefix and all"
            }
            Self::PinBrokenGone => {
                "the replica that held this session is not ready; of the others that cost about the least, this one has lately taken over fewest such sessions"
            }
            Self::PrefixSeen => "this replica served the start of this conversation",
            Self::SessionHome => "a new session, on the replica that its name leads to",
            Self::SessionHomeFull => {
                "a new session; the replica that its name leads to is busier than this one"
            }
            Self::PrefixHome => {
                "a new conversation, on the replica that its first messages lead to"
            }
            Self::PrefixHomeFull => {
                "a new conversation; the replica that its first messages lead to is busier than this one"
            }
            Self::PrefixShared => {
                "a new conversation, on a replica that holds the text it begins with"
            }
            Self::Spread => "nothing to recognise the request by; this replica has the least to do",
            Self::NoneReady => "no replica is ready",
        }
    }
}

#[cfg(test)]
mod tests;
