//! A conversation recognised by what it says: one key per message, each over everything before it.
//!
//! The gateway remembers, for each request it has routed, the key after its last message. Turn n begins with the messages of
//! turn n-1, so the deepest remembered key of turn n's chain leads to the replica that served turn n-1, with no id at all.
//! Keys are over the client's own bytes of each message: how the top level of the body is ordered or spaced changes nothing.

use crate::key::PrefixKey;

/// Keys that [`Chain::deepest`] looks up at most, from the last message backwards. A turn adds a handful of messages
/// (an agent's parallel tool results are the most), so what lies further back is another conversation's beginning.
pub const LOOKBACK_MESSAGES_MAX: usize = 256;

/// One message of a request.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The message as the client wrote it, braces included.
    pub bytes: &'a [u8],
    /// Whether its role is `user`.
    pub is_user: bool,
}

/// The keys of one request's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    keys: Vec<PrefixKey>,
    root: PrefixKey,
}

/// Makes the chain. `salt` is the request's `cache_salt`, `tools` the bytes of its tools (empty where it has none): prompts that
/// differ in any of these share no prefix in an engine, so they share no key.
pub fn chain<'a>(
    tenant: &str,
    model: &str,
    salt: Option<&str>,
    tools: &[u8],
    messages: impl IntoIterator<Item = Message<'a>>,
) -> Chain {
    // A missing salt and an empty one are different to an engine.
    let salted: &[u8] = if salt.is_some() { b"1" } else { b"0" };
    let salt = salt.unwrap_or_default();
    let scope = [tenant.as_bytes(), model.as_bytes(), salted, salt.as_bytes()];
    let start = PrefixKey::start(&scope).then(tools);
    let mut key = start;
    let mut root = None;
    let mut keys = Vec::new();
    for message in messages {
        key = key.then(message.bytes);
        keys.push(key);
        if message.is_user && root.is_none() {
            root = Some(key);
        }
    }
    Chain {
        keys,
        root: root.unwrap_or(key),
    }
}

impl Chain {
    /// The key after the first user message: the same in every turn of a conversation, so its home can be found from it.
    /// Without a user message, the key after the last message.
    #[must_use]
    pub fn root(&self) -> PrefixKey {
        self.root
    }

    /// The key after the last message, to be remembered; `None` without messages.
    #[must_use]
    pub fn last(&self) -> Option<PrefixKey> {
        self.keys.last().copied()
    }

    /// The key after each message, in order.
    #[must_use]
    pub fn keys(&self) -> &[PrefixKey] {
        &self.keys
    }

    /// The deepest key that `known` knows, with the number of messages it covers and what is known of it. At most
    /// [`LOOKBACK_MESSAGES_MAX`] keys are tried.
    pub fn deepest<T>(&self, mut known: impl FnMut(PrefixKey) -> Option<T>) -> Option<(usize, T)> {
        let candidates = self
            .keys
            .iter()
            .enumerate()
            .rev()
            .take(LOOKBACK_MESSAGES_MAX);
        candidates
            .into_iter()
            .find_map(|(index, key)| known(*key).map(|found| (index + 1, found)))
    }
}

#[cfg(test)]
mod tests;
