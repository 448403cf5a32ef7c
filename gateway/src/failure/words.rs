//! What each failure says to a client.

use std::fmt;

use super::Failure;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { path } => write!(
                f,
                "no `{path}` here; this gateway serves POST /v1/chat/completions, GET /v1/models and GET /health"
            ),
            Self::MethodNotAllowed { allowed } => write!(f, "this path takes {allowed} only"),
            Self::BadBody { message } => write!(f, "the body is not a chat request: {message}"),
            Self::BadBudget { message, .. }
            | Self::NoBudget { message }
            | Self::BadWish { message }
            | Self::WishRefused { message } => f.write_str(message),
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
            Self::PromptTooLong { bytes, limit } => write!(
                f,
                "the request's tools and messages are {bytes} bytes, more than the {limit} that the routing policy takes; shorten the conversation, or ask whoever writes the policy to raise `limits.prompt_bytes_max`"
            ),
            Self::SessionBusy { limit } => write!(
                f,
                "this session has as many requests in flight as the routing policy takes of one (`limits.in_flight_per_session` = {limit}); wait until one has ended, or try again after the time in Retry-After"
            ),
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
