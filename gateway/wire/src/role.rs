//! Who speaks in a message.

/// The `role` of one message of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions of whoever runs the application.
    System,
    /// The newer name of `system` in OpenAI's API.
    Developer,
    /// The person or agent that asks.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
    /// The result of a function call, the older name of `tool`.
    Function,
    /// Missing, not a string, or a word that is not in OpenAI's list: the replica will judge it.
    Other,
}

impl Role {
    /// Reads the wire's word, as it stands between the quotes.
    #[must_use]
    pub fn from_wire(word: &[u8]) -> Self {
        match word {
            b"system" => Self::System,
            b"developer" => Self::Developer,
            b"user" => Self::User,
            b"assistant" => Self::Assistant,
            b"tool" => Self::Tool,
            b"function" => Self::Function,
            _ => Self::Other,
        }
    }

    /// The wire's word; `other` for what has none.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Function => "function",
            Self::Other => "other",
        }
    }
}
