//! Conversations whose bodies are put together from parts that never change, so that growing one copies nothing.

use crate::{
    body::Parts,
    prose::{Dice, Prose},
};
use bytes::Bytes;

/// The model that the mock replicas serve.
pub(crate) const MODEL: &str = "mock-model";
/// Bytes of one message, at most: long histories are many messages, as agents make them.
const MESSAGE_BYTES_MAX: usize = 8 * 1_024;
/// Bytes that a turn adds: an answer and the next question.
const TURN_BYTES: usize = 2 * 1_024;
/// Turns of one conversation; the next one on its connection is a new conversation.
const TURNS_MAX: usize = 16;
/// Bytes of a message beside its text.
const MESSAGE_FRAME_BYTES: usize = 40;

/// One conversation: a first body and what later turns added.
pub(crate) struct Conversation {
    name: String,
    dice: Dice,
    parts: Vec<Bytes>,
    user_is_next: bool,
}

impl Conversation {
    /// Conversation number `id`, whose first body has about `body_bytes` bytes. The mock knows it again by the
    /// mark at the start of its first message, which also makes its prefix its own.
    pub(crate) fn new(id: u64, prose: &Prose, body_bytes: usize) -> Self {
        let mut new = Self {
            name: format!("sess-{id}"),
            dice: Dice::new(id),
            parts: Vec::new(),
            user_is_next: false,
        };
        let mut body = Vec::with_capacity(body_bytes + 1_024);
        let head =
            format!(r#"{{"model":"{MODEL}","messages":[{{"role":"user","content":"[[S:{id}]] "#);
        body.extend_from_slice(head.as_bytes());
        let first = body_bytes
            .saturating_sub(head.len() + TAIL.len())
            .clamp(64, MESSAGE_BYTES_MAX);
        body.extend_from_slice(prose.slice(&mut new.dice, first));
        body.extend_from_slice(b"\"}");
        new.add_messages(prose, &mut body, body_bytes.saturating_sub(TAIL.len()));
        new.parts.push(body.into());
        new
    }

    /// The value of its `x-session-id`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it had all the turns it may have.
    pub(crate) fn is_over(&self) -> bool {
        self.parts.len() >= TURNS_MAX
    }

    /// Adds an answer and the next question.
    pub(crate) fn grow(&mut self, prose: &Prose) {
        let mut turn = Vec::with_capacity(TURN_BYTES + 256);
        self.add_messages(prose, &mut turn, TURN_BYTES);
        self.parts.push(turn.into());
    }

    /// Its body as of now.
    pub(crate) fn body(&self, stream: bool) -> Parts {
        let tail = if stream { STREAM_TAIL } else { TAIL };
        Parts::new(
            self.parts
                .iter()
                .cloned()
                .chain([Bytes::from_static(tail.as_bytes())])
                .collect(),
        )
    }

    /// Appends messages of alternating roles until `out` has about `length` bytes; the last is the user's.
    fn add_messages(&mut self, prose: &Prose, out: &mut Vec<u8>, length: usize) {
        while out.len() + 128 < length {
            let bytes = (length - out.len()).min(MESSAGE_BYTES_MAX);
            self.add_message(
                prose,
                out,
                bytes.saturating_sub(MESSAGE_FRAME_BYTES).max(16),
            );
        }
        if self.user_is_next {
            self.add_message(prose, out, 16);
        }
    }

    fn add_message(&mut self, prose: &Prose, out: &mut Vec<u8>, text_bytes: usize) {
        let role = if self.user_is_next {
            "user"
        } else {
            "assistant"
        };
        out.extend_from_slice(format!(r#",{{"role":"{role}","content":""#).as_bytes());
        out.extend_from_slice(prose.slice(&mut self.dice, text_bytes));
        out.extend_from_slice(b"\"}");
        self.user_is_next = !self.user_is_next;
    }
}

const TAIL: &str = r#"],"max_tokens":100,"temperature":0.7}"#;
const STREAM_TAIL: &str = r#"],"max_tokens":100,"temperature":0.7,"stream":true}"#;

#[cfg(test)]
mod tests {
    use super::{Conversation, Dice, Prose, TURNS_MAX};
    use serde_json::Value;

    /// Checks one body: its size, that it is JSON, and that the user has the last word.
    #[track_caller]
    fn check(
        conversation: &Conversation,
        stream: bool,
        bytes: std::ops::RangeInclusive<usize>,
    ) -> Value {
        let text = conversation.body(stream).concat();
        assert!(
            bytes.contains(&text.len()),
            "{} is not within {bytes:?}",
            text.len()
        );
        let value: Value = serde_json::from_slice(&text).unwrap();
        let messages = value["messages"].as_array().unwrap();
        assert_eq!(messages.last().unwrap()["role"], "user");
        for (i, message) in messages.iter().enumerate() {
            assert_eq!(
                message["role"],
                if i % 2 == 0 { "user" } else { "assistant" }
            );
        }
        assert_eq!(value["stream"].as_bool(), stream.then_some(true));
        value
    }

    #[test]
    fn bodies_have_the_size_asked_for_and_end_with_the_user() {
        let prose = Prose::new(1 << 16, Dice::new(1));
        check(&Conversation::new(1, &prose, 1_024), false, 1_000..=1_100);
        check(&Conversation::new(2, &prose, 1_024), true, 1_000..=1_100);
        check(
            &Conversation::new(3, &prose, 262_144),
            false,
            262_000..=262_600,
        );
    }

    #[test]
    fn a_turn_extends_the_messages_before_it() {
        let prose = Prose::new(1 << 16, Dice::new(1));
        let mut conversation = Conversation::new(4, &prose, 16_384);
        let mut before = check(&conversation, false, 16_000..=16_800);
        while !conversation.is_over() {
            conversation.grow(&prose);
            let after = check(&conversation, false, 16_384..=16_800 + TURNS_MAX * 2_200);
            let old = before["messages"].as_array().unwrap();
            assert_eq!(
                &after["messages"].as_array().unwrap()[..old.len()],
                &old[..]
            );
            before = after;
        }
    }
}
