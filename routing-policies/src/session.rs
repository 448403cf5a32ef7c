//! Whose turn is it? Finds what names the session of a request, in the policy's order.

use crate::key::SessionKey;
use crate::policy::SessionPolicy;

/// Longest value that names a session, in bytes. UUIDs take 36 and the longest agents' marks about 100; a value past this is
/// no name but a payload, and counts as absent.
pub const SESSION_VALUE_BYTES_MAX: usize = 256;

/// The headers by which coding agents mark their own sessions: Claude Code, then Codex's three spellings, then OpenCode.
pub const AGENT_HEADERS: [&str; 6] = [
    "x-claude-code-session-id",
    "session_id",
    "session-id",
    "conversation_id",
    "thread-id",
    "x-session-affinity",
];

/// Headers that never name a session, in lower case: they change with each turn, or strangers share them, or they are secrets.
pub const FORBIDDEN_HEADERS: [&str; 26] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "cookie",
    "set-cookie",
    "x-request-id",
    "request-id",
    "x-correlation-id",
    "x-trace-id",
    "trace-id",
    "traceparent",
    "tracestate",
    "b3",
    "x-b3-traceid",
    "x-b3-spanid",
    "x-amzn-trace-id",
    "x-amzn-requestid",
    "x-cloud-trace-context",
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "x-client-ip",
    "cf-connecting-ip",
    "true-client-ip",
    "user-agent",
];

/// What named the session; one of a fixed set, fit for a metric's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionSource {
    /// A header that the policy lists.
    Header,
    /// An agent's own mark.
    Agent,
    /// A body field that the policy lists.
    Body,
}

impl SessionSource {
    /// The word for a label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Agent => "agent",
            Self::Body => "body",
        }
    }
}

/// What [`identify`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Identity {
    /// The session's key and what named it; `None` where nothing did.
    pub session: Option<(SessionKey, SessionSource)>,
    /// Values that were passed over on the way because they are empty or too long.
    pub unusable: u32,
}

/// Finds the session's name: the first usable value among the policy's headers, the agents' headers, the policy's body fields.
///
/// `header` gives a header's value by its lower-case name. `body` holds the string found at each path of `policy.body`, in the
/// same order. `tenant` and `model` scope the key; both may be empty.
pub fn identify<'r>(
    policy: &SessionPolicy,
    tenant: &str,
    model: &str,
    header: impl Fn(&str) -> Option<&'r [u8]>,
    body: &[Option<String>],
) -> Identity {
    let mut unusable = 0;
    let mut usable = |value: &&[u8]| {
        let ok = is_usable(value);
        unusable += u32::from(!ok);
        ok
    };
    let key = |source: SessionSource, name: &str, value: &[u8]| {
        let scope = [tenant.as_bytes(), model.as_bytes()];
        let fields = [
            scope[0],
            scope[1],
            source.as_str().as_bytes(),
            name.as_bytes(),
            value,
        ];
        Some((SessionKey::of(&fields), source))
    };
    let agents = if policy.agents {
        &AGENT_HEADERS[..]
    } else {
        &[]
    };
    let listed = policy
        .headers
        .iter()
        .map(|name| (SessionSource::Header, name.as_str()));
    let marks = agents.iter().map(|name| (SessionSource::Agent, *name));
    for (source, name) in listed.chain(marks) {
        if let Some(value) = header(name).filter(&mut usable) {
            return Identity {
                session: key(source, name, value),
                unusable,
            };
        }
    }
    for (name, value) in policy.body.iter().zip(body) {
        if let Some(value) = value.as_deref().map(str::as_bytes).filter(&mut usable) {
            return Identity {
                session: key(SessionSource::Body, name, value),
                unusable,
            };
        }
    }
    Identity {
        session: None,
        unusable,
    }
}

fn is_usable(value: &[u8]) -> bool {
    !value.trim_ascii().is_empty() && value.len() <= SESSION_VALUE_BYTES_MAX
}

#[cfg(test)]
mod tests;
