//! What a client is told when its request cannot be answered: one enum, one table.
//!
//! `api::rescue` is the only place that turns a `Failure` into a response (A5).

use http::StatusCode;

/// One thing that is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field, as `messages[2].content`.
    pub param: String,
    /// What it is, what is allowed, and what to do.
    pub message: String,
    /// OpenAI's short word for the kind of problem.
    pub code: ProblemCode,
}

/// Kinds of problems in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemCode {
    /// A value of the wrong type or outside its range.
    InvalidValue,
    /// A field that must be there is not.
    Missing,
    /// A field name that this API does not have.
    UnknownParameter,
    /// A field that this API has and this build cannot honour.
    Unsupported,
}

impl ProblemCode {
    fn as_str(self) -> &'static str {
        match self {
            ProblemCode::InvalidValue => "invalid_value",
            ProblemCode::Missing => "missing_required_parameter",
            ProblemCode::UnknownParameter => "unknown_parameter",
            ProblemCode::Unsupported => "unsupported",
        }
    }
}

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The body is not JSON, or not an object.
    BadJson(String),
    /// The body is JSON and says things that cannot be done; never empty.
    Invalid(Vec<Problem>),
    /// The chat template refused the messages; says so, with its own words.
    Template(String),
    /// Prompt and answer do not fit the context.
    ContextLength {
        /// Tokens of the rendered prompt.
        prompt: usize,
        /// Tokens asked for, if the request named a number.
        answer: Option<u32>,
        /// Tokens that the context holds.
        context: usize,
    },
    /// The request names a model that is not served here.
    ModelNotFound {
        /// As the client wrote it.
        asked: String,
        /// What it should write.
        served: String,
    },
    /// No such path.
    NoRoute(String),
    /// The path is there, the method is not.
    MethodNotAllowed {
        /// The one method that is.
        allow: &'static str,
    },
    /// The body is longer than the limit.
    BodyTooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// The body stopped arriving.
    BodyTimeout,
    /// The connection failed while the body was read; nobody may be left to read this.
    BodyCut,
    /// Says something of a session and this replica believes nobody.
    HintsNotTrusted,
    /// The waiting queue is full.
    QueueFull {
        /// Requests waiting.
        depth: usize,
    },
    /// The replica is shutting down.
    Draining,
    /// The engine is gone and only a restart of the replica brings it back.
    Stopped,
    /// Prompt and answer need more KV than the whole replica has; says how much.
    NeverFits(String),
    /// The engine could not go on.
    Engine(String),
}

/// How one kind of failure is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) status: StatusCode,
    /// OpenAI's `error.type`.
    pub(crate) kind: &'static str,
    /// OpenAI's `error.code`.
    pub(crate) code: &'static str,
    /// When to come again, in seconds.
    pub(crate) retry_after_s: Option<u32>,
}

/// Long enough for a few steps to finish, short enough that a client's own backoff is not needed.
const RETRY_AFTER_S: u32 = 1;

impl Failure {
    /// The table: one line per kind.
    pub(crate) fn row(&self) -> Row {
        let (status, kind, code, retry_after_s) = match self {
            Failure::BadJson(_) => (400, "invalid_request_error", "invalid_json", None),
            Failure::Invalid(problems) => {
                let code = problems
                    .first()
                    .map_or("invalid_value", |p| p.code.as_str());
                (400, "invalid_request_error", code, None)
            }
            Failure::Template(_) => (400, "invalid_request_error", "template_refused", None),
            Failure::ContextLength { .. } => (
                400,
                "invalid_request_error",
                "context_length_exceeded",
                None,
            ),
            Failure::ModelNotFound { .. } => {
                (404, "invalid_request_error", "model_not_found", None)
            }
            Failure::NoRoute(_) => (404, "invalid_request_error", "unknown_url", None),
            Failure::MethodNotAllowed { .. } => {
                (405, "invalid_request_error", "method_not_allowed", None)
            }
            Failure::BodyTooLarge { .. } => (413, "invalid_request_error", "body_too_large", None),
            Failure::BodyTimeout => (408, "invalid_request_error", "body_timeout", None),
            Failure::BodyCut => (400, "invalid_request_error", "body_cut", None),
            Failure::HintsNotTrusted => (403, "permission_error", "hints_not_trusted", None),
            Failure::QueueFull { .. } => (503, "server_error", "queue_full", Some(RETRY_AFTER_S)),
            Failure::Draining => (503, "server_error", "draining", Some(RETRY_AFTER_S)),
            Failure::Stopped => (503, "server_error", "engine_stopped", None),
            Failure::NeverFits(_) => (
                400,
                "invalid_request_error",
                "context_length_exceeded",
                None,
            ),
            Failure::Engine(_) => (500, "server_error", "engine_failed", None),
        };
        // Every number above is a registered status; 500 is never taken.
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Row {
            status,
            kind,
            code,
            retry_after_s,
        }
    }

    /// The field at fault, where there is one.
    pub(crate) fn param(&self) -> Option<&str> {
        match self {
            Failure::Invalid(problems) => problems.first().map(|p| p.param.as_str()),
            Failure::ModelNotFound { .. } => Some("model"),
            Failure::ContextLength { .. } | Failure::Template(_) => Some("messages"),
            _ => None,
        }
    }

    /// What happened, what is allowed, and what to do, in one line.
    pub(crate) fn message(&self) -> String {
        match self {
            Failure::BadJson(what) => {
                format!("the body is not a JSON object: {what}")
            }
            Failure::Invalid(problems) => join(problems),
            Failure::ContextLength {
                prompt,
                answer: Some(answer),
                context,
            } => format!(
                "the context holds {context} tokens and this request needs {}: {prompt} in the messages and \
                 {answer} asked for as `max_tokens`; shorten the messages or ask for fewer",
                prompt + *answer as usize
            ),
            Failure::ContextLength {
                prompt,
                answer: None,
                context,
            } => format!(
                "the context holds {context} tokens and the messages alone take {prompt}, which leaves no room \
                 for an answer; shorten the messages"
            ),
            Failure::ModelNotFound { asked, served } => {
                format!("the model `{asked}` is not served here; this replica serves `{served}`")
            }
            Failure::NoRoute(path) => format!(
                "there is nothing at `{path}`; see /v1/chat/completions, /v1/models, /health and /metrics"
            ),
            Failure::MethodNotAllowed { allow } => format!("this path takes {allow} only"),
            Failure::BodyTooLarge { limit_bytes } => {
                format!("the body is longer than {limit_bytes} bytes")
            }
            Failure::BodyTimeout => "the body stopped arriving".to_owned(),
            Failure::BodyCut => "the connection failed while the body was read".to_owned(),
            Failure::HintsNotTrusted => {
                "this replica takes no word on sessions; start it with `--trust-hints` where only a gateway reaches it"
                    .to_owned()
            }
            Failure::QueueFull { depth } => {
                format!(
                    "{depth} requests are waiting already, which is the most; try again shortly"
                )
            }
            Failure::Draining => {
                "this replica is shutting down and takes no new requests; try another".to_owned()
            }
            Failure::Stopped => {
                "the engine has stopped after an internal error and the replica must be restarted; try another"
                    .to_owned()
            }
            Failure::Template(what) | Failure::NeverFits(what) => what.clone(),
            Failure::Engine(what) => format!("the engine failed: {what}"),
        }
    }
}

fn join(problems: &[Problem]) -> String {
    let lines: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect_file;

    fn every_kind() -> Vec<Failure> {
        let problem = |code| {
            Failure::Invalid(vec![Problem {
                param: "temperature".into(),
                message: "`temperature` is `3`, expected a number from 0 to 2".into(),
                code,
            }])
        };
        vec![
            Failure::BadJson("expected value at line 1 column 1".into()),
            problem(ProblemCode::InvalidValue),
            problem(ProblemCode::Missing),
            problem(ProblemCode::UnknownParameter),
            problem(ProblemCode::Unsupported),
            Failure::Template(
                "the model's chat template refuses these messages: roles must alternate".into(),
            ),
            Failure::ContextLength {
                prompt: 90,
                answer: Some(20),
                context: 100,
            },
            Failure::ContextLength {
                prompt: 100,
                answer: None,
                context: 100,
            },
            Failure::ModelNotFound {
                asked: "tide-9b".into(),
                served: "lamp-3b".into(),
            },
            Failure::NoRoute("/v2".into()),
            Failure::MethodNotAllowed { allow: "POST" },
            Failure::BodyTooLarge { limit_bytes: 64 },
            Failure::BodyTimeout,
            Failure::BodyCut,
            Failure::HintsNotTrusted,
            Failure::QueueFull { depth: 256 },
            Failure::Draining,
            Failure::Stopped,
            Failure::NeverFits(
                "prompt and `max_tokens` need 9 blocks, and this replica has 8".into(),
            ),
            Failure::Engine("a step failed".into()),
        ]
    }

    #[test]
    fn the_table_is_as_written_down() {
        let mut lines = String::new();
        for failure in every_kind() {
            let row = failure.row();
            let retry = row
                .retry_after_s
                .map_or("-".to_owned(), |s| format!("{s} s"));
            let param = failure.param().unwrap_or("-");
            lines.push_str(&format!(
                "{} | {} | {} | {param} | {retry} | {}\n",
                row.status.as_u16(),
                row.kind,
                row.code,
                failure.message()
            ));
        }
        expect_file!["../tests/failures.txt"].assert_eq(&lines);
    }

    #[test]
    fn every_status_of_the_table_is_the_one_named() {
        for failure in every_kind() {
            let server = matches!(failure, Failure::Engine(_));
            assert_eq!(
                failure.row().status == StatusCode::INTERNAL_SERVER_ERROR,
                server
            );
        }
    }
}
