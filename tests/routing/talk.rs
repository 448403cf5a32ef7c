//! Conversations, and how clients write their turns.

use serde_json::{Value, json};
use system_tests::scripted::{BYTES_PER_TOKEN, MODEL};

/// One conversation, known from its first to its last turn.
pub(crate) struct Talk {
    name: String,
    /// Its messages, each in JSON.
    messages: Vec<String>,
    /// Messages that each turn's request holds, turn by turn.
    turns: Vec<usize>,
}

/// How a client writes its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dress {
    /// With a session header.
    SessionHeader,
    /// With nothing but the conversation.
    Bare,
    /// The same, through a proxy that names each request anew.
    RequestId,
    /// The same, with the top-level fields in another order each time.
    FieldOrder,
}

impl Talk {
    /// The conversation `messages`; each that the assistant says ends a turn.
    pub(crate) fn recorded(name: &str, messages: &[Value]) -> Self {
        let turns = messages
            .iter()
            .enumerate()
            .filter(|(i, message)| *i > 0 && message["role"] == "assistant")
            .map(|(i, _)| i)
            .collect();
        Self {
            name: name.to_owned(),
            messages: messages.iter().map(Value::to_string).collect(),
            turns,
        }
    }

    /// A made-up conversation of `turns` turns: `system` where it is not empty, a first question of `first` tokens, and `later` tokens
    /// for each question after it. No two names share more than `system`.
    pub(crate) fn made(name: &str, system: &str, turns: usize, first: u64, later: u64) -> Self {
        let say = |role: &str, text: &str| json!({"role": role, "content": text}).to_string();
        let mut messages = Vec::new();
        let mut ends = Vec::with_capacity(turns);
        if !system.is_empty() {
            messages.push(say("system", system));
        }
        for turn in 0..turns {
            let tokens = if turn == 0 { first } else { later };
            messages.push(say("user", &words(&format!("{name} asks {turn}:"), tokens)));
            ends.push(messages.len());
            messages.push(say("assistant", "Yes."));
        }
        Self {
            name: name.to_owned(),
            messages,
            turns: ends,
        }
    }

    /// How many turns it has.
    pub(crate) fn turns(&self) -> usize {
        self.turns.len()
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The headers and the body of a turn, which is request `number` of all.
    pub(crate) fn request(
        &self,
        turn: usize,
        dress: Dress,
        number: u64,
    ) -> (Vec<(&'static str, String)>, String) {
        let headers = match dress {
            Dress::SessionHeader => vec![("x-session-id", self.name.clone())],
            Dress::RequestId => vec![("x-request-id", format!("proxy-{number:016x}"))],
            Dress::Bare | Dress::FieldOrder => Vec::new(),
        };
        let mut fields = [
            format!("\"model\":\"{MODEL}\""),
            format!(
                "\"messages\":[{}]",
                self.messages[..self.turns[turn]].join(",")
            ),
            "\"max_tokens\":64".to_owned(),
            "\"temperature\":0.7".to_owned(),
        ];
        if dress == Dress::FieldOrder {
            let by = number as usize % fields.len();
            fields.rotate_left(by);
        }
        (headers, format!("{{{}}}", fields.join(",")))
    }
}

/// Text of about `tokens` tokens that begins with `start` and repeats it with a count, so that no two starts share a block.
pub(crate) fn words(start: &str, tokens: u64) -> String {
    let bytes = (tokens * BYTES_PER_TOKEN) as usize;
    let mut text = String::with_capacity(bytes + 64);
    for i in 0_u64.. {
        text.push_str(&format!("{start} part {i}, "));
        if text.len() >= bytes {
            break;
        }
    }
    text.truncate(bytes.max(start.len()));
    text
}
