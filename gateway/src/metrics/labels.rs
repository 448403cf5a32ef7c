//! The closed sets of values that labels take.

/// How one chat request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The whole answer reached the client.
    Ok,
    /// A replica refused the request as wrong (4xx), passed on as it was.
    ClientError,
    /// The gateway refused the request.
    Rejected,
    /// The client left first.
    ClientClosed,
    /// A replica failed, before or within its answer.
    UpstreamError,
    /// A replica was too slow.
    Timeout,
}

impl Outcome {
    pub(super) const ALL: [Self; 6] = [
        Self::Ok,
        Self::ClientError,
        Self::Rejected,
        Self::ClientClosed,
        Self::UpstreamError,
        Self::Timeout,
    ];

    /// The outcome at an index, as `as u8` gives it.
    #[must_use]
    pub fn from_index(index: u8) -> Option<Self> {
        Self::ALL.get(usize::from(index)).copied()
    }

    /// The metric label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ClientError => "client_error",
            Self::Rejected => "rejected",
            Self::ClientClosed => "client_closed",
            Self::UpstreamError => "upstream_error",
            Self::Timeout => "timeout",
        }
    }
}

/// Who split reasoning off an answer, or why nobody did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitBy {
    /// The replica itself.
    Replica,
    /// The gateway.
    Gateway,
    /// Nobody: no family is known for the model.
    UnknownFamily,
    /// Nobody, in some part of it: text that could not be read, or more choices than are told apart.
    Unread,
}

impl SplitBy {
    pub(super) const ALL: [Self; 4] = [
        Self::Replica,
        Self::Gateway,
        Self::UnknownFamily,
        Self::Unread,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Replica => "replica",
            Self::Gateway => "gateway",
            Self::UnknownFamily => "unknown_family",
            Self::Unread => "unread",
        }
    }
}

/// What became of a budget of thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetResult {
    /// It went to the replica as asked for.
    Kept,
    /// It went there lowered: by the policy, or so that an answer fits behind it.
    Lowered,
    /// The replica's engine is not known, or has no field for it: the request went as it came.
    Unsupported,
    /// The answer's reasoning came up to it.
    Reached,
    /// The gateway cut the thought, and the replica went on behind it.
    Cut,
    /// The gateway was to keep it and could not for this request, which was refused.
    Refused,
}

impl BudgetResult {
    pub(super) const ALL: [Self; 6] = [
        Self::Kept,
        Self::Lowered,
        Self::Unsupported,
        Self::Reached,
        Self::Cut,
        Self::Refused,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Lowered => "lowered",
            Self::Unsupported => "unsupported",
            Self::Reached => "reached",
            Self::Cut => "cut",
            Self::Refused => "refused",
        }
    }
}

/// What became of a client's wish about thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WishResult {
    /// The client has its way, or its lane does that anyway.
    Followed,
    /// The client gets less than it wished for.
    Capped,
    /// The client was told no.
    Refused,
}

impl WishResult {
    pub(super) const ALL: [Self; 3] = [Self::Followed, Self::Capped, Self::Refused];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Followed => "followed",
            Self::Capped => "capped",
            Self::Refused => "refused",
        }
    }
}

/// How one attempt at a replica went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptResult {
    /// The replica answered, whatever the status.
    Answered,
    /// The replica answered 502 or 503, and another candidate was tried.
    Refused,
    /// No connection.
    Unreachable,
    /// Closed before its first byte.
    Reset,
    /// Closed a kept connection as the request went out; tried again on a new one.
    StaleConnection,
    /// No first byte in time.
    Timeout,
}

impl AttemptResult {
    pub(super) const ALL: [Self; 6] = [
        Self::Answered,
        Self::Refused,
        Self::Unreachable,
        Self::Reset,
        Self::StaleConnection,
        Self::Timeout,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Reset => "reset",
            Self::StaleConnection => "stale_connection",
            Self::Timeout => "timeout",
        }
    }
}
