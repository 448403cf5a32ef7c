//! What several system tests say in the same words.

use serde_json::{Value, json};
use system_tests::{fleet::Fleet, http};

/// A system prompt long enough (about 700 tokens) that its prefill is felt on a CPU.
pub(crate) fn guide(seed: &str) -> String {
    let mut text = format!("You are the guide of {seed}, a small harbour town. What you know:\n");
    for (i, place) in PLACES.iter().cycle().take(48).enumerate() {
        text.push_str(&format!(
            "{}. The {place} of {seed} opens at {} and closes at {}.\n",
            i + 1,
            7 + i % 4,
            17 + i % 5
        ));
    }
    text
}

const PLACES: &[&str] = &[
    "lighthouse",
    "fish market",
    "ferry pier",
    "tea house",
    "museum",
    "old library",
];

/// A greedy chat request.
pub(crate) fn ask(messages: &Value, max_tokens: u32) -> Value {
    json!({"messages": messages, "max_tokens": max_tokens, "temperature": 0})
}

/// A message of a role.
pub(crate) fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

/// One turn of a conversation: appends the question, sends, appends the answer, returns what the client was told.
pub(crate) struct Turn {
    pub(crate) replica: String,
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
}

/// A conversation that a client holds: the growing list of messages, and the headers sent with each turn.
pub(crate) struct Conversation {
    messages: Vec<Value>,
    headers: Vec<(String, String)>,
}

impl Conversation {
    /// Starts with a system prompt; `session` is sent as `x-session-id` if given.
    pub(crate) fn new(system: &str, session: Option<&str>) -> Self {
        Conversation {
            messages: vec![message("system", system)],
            headers: session
                .map(|s| ("x-session-id".to_owned(), s.to_owned()))
                .into_iter()
                .collect(),
        }
    }

    /// The request of the next turn, with `question` appended to what was said.
    pub(crate) fn next(&mut self, question: &str, max_tokens: u32) -> Value {
        self.messages.push(message("user", question));
        ask(&Value::from(self.messages.clone()), max_tokens)
    }

    /// The headers that go with every turn.
    pub(crate) fn headers(&self) -> Vec<(&str, &str)> {
        self.headers
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect()
    }

    /// Asks and waits for the whole answer.
    pub(crate) async fn turn(&mut self, fleet: &Fleet, question: &str) -> Turn {
        let body = self.next(question, 16);
        let reply = http::chat(fleet.listen, &self.headers(), &body)
            .await
            .expect("an answer");
        let answer = reply.json();
        assert_eq!(reply.status, 200, "{answer}");
        let said = &answer["choices"][0]["message"];
        assert_eq!(said["role"], "assistant", "{answer}");
        self.messages.push(said.clone());
        Turn {
            replica: reply.header("x-pinion-replica").to_owned(),
            prompt_tokens: answer["usage"]["prompt_tokens"]
                .as_u64()
                .expect("prompt_tokens"),
            cached_tokens: answer["usage"]["prompt_tokens_details"]["cached_tokens"]
                .as_u64()
                .expect("cached_tokens is always there"),
        }
    }
}
