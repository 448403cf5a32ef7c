//! Every way in which the gateway itself says no, and one table that tells what each means: to the client
//! (status, type, code), to the retry loop (may it be tried elsewhere) and to the operator (whose fault, outcome).

mod words;

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::metrics::Outcome;

/// What a client is told when the gateway cannot pass on a replica's answer.
#[derive(Clone, Debug)]
pub enum Failure {
    /// No such path.
    NotFound {
        /// The path asked for.
        path: String,
    },
    /// The path exists under another method.
    MethodNotAllowed {
        /// The method that works.
        allowed: &'static str,
    },
    /// The body is not the JSON of a chat request; the message has the byte offset.
    BadBody {
        /// What was expected, and where.
        message: String,
    },
    /// A field that limits thinking does not say a limit.
    BadBudget {
        /// The field.
        field: &'static str,
        /// What is expected.
        message: String,
    },
    /// What the request says of thinking cannot be understood, or names a lane that there is not.
    BadWish {
        /// What is expected.
        message: String,
    },
    /// The request's lane does not take what it says of thinking.
    WishRefused {
        /// What the lane takes.
        message: String,
    },
    /// The gateway is to keep a budget of thinking and cannot for this request.
    NoBudget {
        /// Why not, and what to do.
        message: String,
    },
    /// More bytes than the limit.
    BodyTooLarge {
        /// Bytes allowed.
        limit: usize,
    },
    /// The client stopped sending in the middle of its body.
    BodyCut,
    /// The client took too long over its body.
    BodySlow {
        /// How long it had.
        after: Duration,
    },
    /// No replica serves this model.
    ModelNotFound {
        /// The model asked for.
        model: String,
        /// The models that there are, comma separated.
        known: String,
    },
    /// More bytes of tools and messages than the policy takes.
    PromptTooLong {
        /// Bytes sent.
        bytes: u64,
        /// Bytes allowed.
        limit: u32,
    },
    /// As many requests of one session are in flight as the policy takes.
    SessionBusy {
        /// How many that is.
        limit: u32,
    },
    /// As many requests are in flight as the gateway takes.
    Overloaded {
        /// How many that is.
        limit: usize,
    },
    /// No replica is ready.
    NoReplica,
    /// The request's lane leads to a pool in which no replica is ready.
    NoReplicaInPool {
        /// The lane.
        lane: String,
        /// Its pool.
        pool: String,
    },
    /// No connection to a replica.
    Connect {
        /// The replica.
        replica: Arc<str>,
        /// The operating system's words.
        cause: String,
    },
    /// The replica closed the connection before the first byte of its answer.
    Reset {
        /// The replica.
        replica: Arc<str>,
        /// The client library's words.
        cause: String,
    },
    /// The replica's first byte did not come in time.
    FirstByteTimeout {
        /// The replica.
        replica: Arc<str>,
        /// How long it had.
        after: Duration,
    },
    /// The answer ended in the middle.
    Truncated {
        /// The replica.
        replica: Arc<str>,
        /// What was seen.
        cause: String,
    },
    /// The answer fell silent.
    IdleTimeout {
        /// The replica.
        replica: Arc<str>,
        /// How long it had.
        after: Duration,
    },
    /// One event of the answer is larger than the gateway holds.
    EventTooLarge {
        /// The replica.
        replica: Arc<str>,
        /// Which bound was passed.
        cause: String,
    },
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request was wrong or the client left.
    Client,
    /// A replica did not do its part.
    Replica,
    /// The gateway or the fleet has no room.
    Capacity,
}

/// What a failure means to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// HTTP status, where no byte has been sent yet.
    pub status: StatusCode,
    /// OpenAI's `error.type`.
    pub kind: &'static str,
    /// OpenAI's `error.code`, and the label of `gateway_failures_total`.
    pub code: &'static str,
    /// Whose fault it is.
    pub fault: Fault,
    /// Whether another candidate may be tried, as long as the client has had no byte.
    pub retryable: bool,
    /// `Retry-After` in seconds.
    pub retry_after: Option<u32>,
    /// How the request counts.
    pub outcome: Outcome,
}

const fn client(status: StatusCode, code: &'static str) -> Row {
    Row {
        status,
        kind: "invalid_request_error",
        code,
        fault: Fault::Client,
        retryable: false,
        retry_after: None,
        outcome: Outcome::Rejected,
    }
}

const fn replica(status: StatusCode, code: &'static str, retryable: bool, outcome: Outcome) -> Row {
    let kind = "server_error";
    Row {
        status,
        kind,
        code,
        fault: Fault::Replica,
        retryable,
        retry_after: None,
        outcome,
    }
}

const fn capacity(code: &'static str, retry_after: u32) -> Row {
    Row {
        status: StatusCode::SERVICE_UNAVAILABLE,
        kind: "server_error",
        code,
        fault: Fault::Capacity,
        retryable: false,
        retry_after: Some(retry_after),
        outcome: Outcome::Rejected,
    }
}

impl Failure {
    /// The table.
    #[must_use]
    pub fn row(&self) -> Row {
        use Outcome::{Timeout, UpstreamError};
        match self {
            Self::NotFound { .. } => client(StatusCode::NOT_FOUND, "not_found"),
            Self::MethodNotAllowed { .. } => {
                client(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed")
            }
            Self::BadBody { .. } => client(StatusCode::BAD_REQUEST, "invalid_body"),
            Self::BadBudget { .. } => client(StatusCode::BAD_REQUEST, "invalid_thinking_budget"),
            Self::BadWish { .. } => client(StatusCode::BAD_REQUEST, "invalid_wish"),
            Self::WishRefused { .. } => client(StatusCode::BAD_REQUEST, "wish_refused"),
            Self::NoBudget { .. } => client(StatusCode::BAD_REQUEST, "thinking_budget_unsupported"),
            Self::BodyTooLarge { .. } => client(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"),
            Self::BodyCut => Row {
                outcome: Outcome::ClientClosed,
                ..client(StatusCode::BAD_REQUEST, "body_cut")
            },
            Self::BodySlow { .. } => client(StatusCode::REQUEST_TIMEOUT, "body_slow"),
            Self::ModelNotFound { .. } => client(StatusCode::NOT_FOUND, "model_not_found"),
            Self::PromptTooLong { .. } => client(StatusCode::PAYLOAD_TOO_LARGE, "prompt_too_long"),
            Self::SessionBusy { .. } => Row {
                kind: "rate_limit_error",
                retry_after: Some(1),
                ..client(StatusCode::TOO_MANY_REQUESTS, "session_busy")
            },
            Self::Overloaded { .. } => capacity("gateway_overloaded", 1),
            Self::NoReplica => Row {
                outcome: UpstreamError,
                ..capacity("no_replica_ready", 2)
            },
            Self::NoReplicaInPool { .. } => Row {
                outcome: UpstreamError,
                ..capacity("no_replica_in_pool", 2)
            },
            Self::Connect { .. } => replica(
                StatusCode::BAD_GATEWAY,
                "replica_unreachable",
                true,
                UpstreamError,
            ),
            Self::Reset { .. } => replica(
                StatusCode::BAD_GATEWAY,
                "replica_reset",
                true,
                UpstreamError,
            ),
            Self::FirstByteTimeout { .. } => replica(
                StatusCode::GATEWAY_TIMEOUT,
                "first_byte_timeout",
                false,
                Timeout,
            ),
            Self::Truncated { .. } => replica(
                StatusCode::BAD_GATEWAY,
                "answer_truncated",
                false,
                UpstreamError,
            ),
            Self::IdleTimeout { .. } => {
                replica(StatusCode::GATEWAY_TIMEOUT, "idle_timeout", false, Timeout)
            }
            Self::EventTooLarge { .. } => replica(
                StatusCode::BAD_GATEWAY,
                "event_too_large",
                false,
                UpstreamError,
            ),
        }
    }

    /// The replica at fault, where there is one.
    #[must_use]
    pub fn replica(&self) -> Option<&str> {
        match self {
            Self::Connect { replica, .. }
            | Self::Reset { replica, .. }
            | Self::FirstByteTimeout { replica, .. }
            | Self::Truncated { replica, .. }
            | Self::IdleTimeout { replica, .. }
            | Self::EventTooLarge { replica, .. } => Some(replica),
            _ => None,
        }
    }

    /// OpenAI's `error.param`: the field at fault, where there is one.
    #[must_use]
    pub fn param(&self) -> Option<&'static str> {
        match self {
            Self::ModelNotFound { .. } => Some("model"),
            Self::BadBudget { field, .. } => Some(field),
            Self::PromptTooLong { .. } => Some("messages"),
            _ => None,
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests;
