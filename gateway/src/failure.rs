//! Every way in which the gateway itself says no, and one table that tells what each means: to the client
//! (status, type, code), to the retry loop (may it be tried elsewhere) and to the operator (whose fault, outcome).

use std::fmt;
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
            Self::BodyTooLarge { .. } => client(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"),
            Self::BodyCut => Row {
                outcome: Outcome::ClientClosed,
                ..client(StatusCode::BAD_REQUEST, "body_cut")
            },
            Self::BodySlow { .. } => client(StatusCode::REQUEST_TIMEOUT, "body_slow"),
            Self::ModelNotFound { .. } => client(StatusCode::NOT_FOUND, "model_not_found"),
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
            _ => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { path } => write!(
                f,
                "no `{path}` here; this gateway serves POST /v1/chat/completions, GET /v1/models and GET /health"
            ),
            Self::MethodNotAllowed { allowed } => write!(f, "this path takes {allowed} only"),
            Self::BadBody { message } => write!(f, "the body is not a chat request: {message}"),
            Self::BadBudget { message, .. } => f.write_str(message),
            Self::BodyTooLarge { limit } => write!(
                f,
                "the body is larger than the {limit} bytes that this gateway takes; send less, or ask its operator to raise `limits.body_bytes_max`"
            ),
            Self::BodyCut => f.write_str("the request body ended before its last byte"),
            Self::BodySlow { after } => {
                write!(f, "the request body did not arrive within {} s", after.as_secs_f32())
            }
            Self::ModelNotFound { model, known } => {
                write!(f, "no replica serves the model `{model}`; there is: {known}")
            }
            Self::Overloaded { limit } => write!(
                f,
                "{limit} requests are in flight, as many as this gateway takes; try again after the time in Retry-After"
            ),
            Self::NoReplica => f.write_str(
                "no replica is ready; try again after the time in Retry-After (operators: see /state on the admin address)",
            ),
            Self::NoReplicaInPool { lane, pool } => write!(
                f,
                "no replica of the pool `{pool}` is ready, and the lane `{lane}` leads nowhere else; try again after the time in Retry-After (operators: see /state on the admin address)"
            ),
            Self::Connect { replica, cause } => {
                write!(f, "replica `{replica}` cannot be reached: {cause}")
            }
            Self::Reset { replica, cause } => {
                write!(f, "replica `{replica}` closed the connection before it answered: {cause}")
            }
            Self::FirstByteTimeout { replica, after } => write!(
                f,
                "replica `{replica}` did not begin its answer within {} s",
                after.as_secs_f32()
            ),
            Self::Truncated { replica, cause } => write!(
                f,
                "the answer of replica `{replica}` broke off: {cause}; what came before this is not complete"
            ),
            Self::IdleTimeout { replica, after } => write!(
                f,
                "replica `{replica}` fell silent for {} s in the middle of its answer",
                after.as_secs_f32()
            ),
            Self::EventTooLarge { replica, cause } => {
                write!(f, "replica `{replica}` sent an event that is too large: {cause}")
            }
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests;
