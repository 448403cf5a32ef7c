//! A conversation recognised by what it says: one key per message, each over everything before it.
//!
//! The gateway remembers, for each request it has routed, the key after its last message. Turn n begins with the messages of
//! turn n-1, so the deepest remembered key of turn n's chain leads to the replica that served turn n-1, with no id at all.
//! Keys are over the client's own bytes of each message: how the top level of the body is ordered or spaced changes nothing.
//!
//! Long messages are cut, so that a system prompt or a document that two conversations share is found though what follows differs:
//! the key after each piece names the text up to there, and the pieces are the blocks of the placement rule.

use crate::key::PrefixKey;
use crate::placement::Block;

/// Keys that [`Chain::deepest`] looks up at most, from the last message backwards. A turn adds a handful of messages
/// (an agent's parallel tool results are the most), so what lies further back is another conversation's beginning.
pub const LOOKBACK_MESSAGES_MAX: usize = 256;

/// Blocks kept of one request; the text behind them counts as one that no replica holds. At 2,048 bytes a block this is 4 MiB.
pub const BLOCKS_MAX: usize = 2_048;

/// One message of a request.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The message as the client wrote it, braces included.
    pub bytes: &'a [u8],
    /// Whether its role is `user`.
    pub is_user: bool,
}

/// The keys of one request's messages, and of the pieces that they were cut into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    keys: Vec<PrefixKey>,
    root: PrefixKey,
    /// The key after each piece and the bytes up to there, tools included.
    pieces: Vec<(PrefixKey, u64)>,
    /// Bytes before each message, tools included.
    starts: Vec<u64>,
    bytes: u64,
}

/// Where in a request a text lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The message, counted from 0; `None` for the tools.
    pub message: Option<usize>,
    /// Bytes of it, as the client wrote it, that lie before the text.
    pub byte: u64,
}

/// A chain while it is made.
struct Links {
    key: PrefixKey,
    block_bytes: usize,
    pieces: Vec<(PrefixKey, u64)>,
    bytes: u64,
}

impl Links {
    /// Goes over one text. A text that fits into one piece has the key that it always had. That a piece's key does not tell whether
    /// a message ends there is no confusion: a message is a whole JSON object, and no other object begins with one.
    fn text(&mut self, text: &[u8]) {
        for piece in text.chunks(self.block_bytes) {
            self.key = self.key.then(piece);
            self.bytes = self.bytes.saturating_add(piece.len() as u64);
            if self.pieces.len() < BLOCKS_MAX {
                self.pieces.push((self.key, self.bytes));
            }
        }
    }
}

/// What keeps prompts apart however alike they begin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope<'a> {
    /// The tenant; empty for nobody.
    pub tenant: &'a str,
    /// The model; empty where none is asked for.
    pub model: &'a str,
    /// The request's `cache_salt`.
    pub salt: Option<&'a str>,
    /// The reasoning effort, where the model's template writes it at the head of the prompt.
    pub effort: Option<&'a str>,
}

impl Scope<'_> {
    fn key(&self) -> PrefixKey {
        // A missing salt and an empty one are different to an engine.
        let salted: &[u8] = if self.salt.is_some() { b"1" } else { b"0" };
        let salt = self.salt.unwrap_or_default().as_bytes();
        let mut fields = vec![self.tenant.as_bytes(), self.model.as_bytes(), salted, salt];
        fields.extend(self.effort.map(str::as_bytes));
        PrefixKey::start(&fields)
    }
}

/// Makes the chain. `tools` are the bytes of the request's tools (empty where it has none): prompts that differ in them or in `scope` share
/// no prefix in an engine, so they share no key. Texts are cut into pieces of `block_bytes`, at least one.
pub fn chain<'a>(
    scope: &Scope<'_>,
    tools: &[u8],
    messages: impl IntoIterator<Item = Message<'a>>,
    block_bytes: u32,
) -> Chain {
    let mut links = Links {
        key: scope.key(),
        block_bytes: usize::try_from(block_bytes).unwrap_or(usize::MAX).max(1),
        pieces: Vec::new(),
        bytes: 0,
    };
    match tools {
        // A link all the same, so that no message can stand for tools.
        b"" => links.key = links.key.then(b""),
        tools => links.text(tools),
    }
    let mut root = None;
    let mut keys = Vec::new();
    let mut starts = Vec::new();
    for message in messages {
        starts.push(links.bytes);
        links.text(message.bytes);
        keys.push(links.key);
        if message.is_user && root.is_none() {
            root = Some(links.key);
        }
    }
    Chain {
        keys,
        root: root.unwrap_or(links.key),
        pieces: links.pieces,
        starts,
        bytes: links.bytes,
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

    /// Bytes of the tools and messages.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the block behind the first `blocks` begins: a difference from what was sent before lies in it where those are all that
    /// is known. `None` where there is no such block.
    #[must_use]
    pub fn place(&self, blocks: usize) -> Option<Place> {
        self.pieces.get(blocks)?;
        let before = blocks.checked_sub(1).map_or(0, |last| self.pieces[last].1);
        let message = self.starts.partition_point(|start| *start <= before);
        Some(match message.checked_sub(1) {
            Some(index) => Place {
                message: Some(index),
                byte: before - self.starts[index],
            },
            None => Place {
                message: None,
                byte: before,
            },
        })
    }

    /// Tokens of the whole prompt, where a token takes so many bytes.
    #[must_use]
    pub fn tokens(&self, bytes_per_token: f64) -> u32 {
        tokens(self.bytes, bytes_per_token)
    }

    /// The blocks that the placement rule looks up, where a token takes so many bytes. Rounded along the prompt, not block by block, so
    /// that many short ones make no error; yet each has a token at least, which bounds how many a cache's size is believed to hold.
    #[must_use]
    pub fn blocks(&self, bytes_per_token: f64) -> Vec<Block> {
        let mut before = 0;
        let block = |&(key, end): &(PrefixKey, u64)| {
            let until = tokens(end, bytes_per_token);
            let block = Block {
                key: key.get(),
                tokens: until.saturating_sub(before).max(1),
            };
            before = until;
            block
        };
        self.pieces.iter().map(block).collect()
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

fn tokens(bytes: u64, bytes_per_token: f64) -> u32 {
    // A cast from a float stops at the bounds of the integer.
    (bytes as f64 / bytes_per_token).ceil() as u32
}

#[cfg(test)]
mod tests;
