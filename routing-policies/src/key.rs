//! The keys by which sessions and prefixes are remembered, and how they are made.
//!
//! Every key is xxh3 over fields written with their lengths in front, so that no two lists of fields run into the same bytes.
//! The outputs are pinned by known-answer tests: two gateways, and this build and the next, must agree.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Names one session of one tenant and model. Two keys are compared whole, never by a prefix of the client's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(u128);

/// Names everything that a conversation says up to the end of one message. A collision costs a slower route, never a wrong
/// answer: the replica compares tokens before it reuses anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrefixKey(u64);

/// Names a replica in decisions: a hash of its configured name, the same on every gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaId(u64);

impl ReplicaId {
    /// The id of the replica that the configuration calls `name`.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self(xxh3_64(name.as_bytes()))
    }

    /// The id as a number, for logs.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

impl SessionKey {
    pub(crate) fn of(fields: &[&[u8]]) -> Self {
        Self(xxh3_128(&with_lengths(fields)))
    }

    /// The key as a number, for logs.
    #[must_use]
    pub fn get(self) -> u128 {
        self.0
    }
}

impl PrefixKey {
    pub(crate) fn start(fields: &[&[u8]]) -> Self {
        Self(xxh3_64(&with_lengths(fields)))
    }

    /// The key one message on. The message is hashed apart, so that the link is always 16 bytes and needs no length.
    pub(crate) fn then(self, message: &[u8]) -> Self {
        let mut link = [0; 16];
        link[..8].copy_from_slice(&self.0.to_le_bytes());
        link[8..].copy_from_slice(&xxh3_64(message).to_le_bytes());
        Self(xxh3_64(&link))
    }

    /// The key as a number, for logs.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

/// A key for rendezvous, from whichever of its forms a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlacementKey(u128);

impl PlacementKey {
    /// A key for a request with no identity at all: its body.
    #[must_use]
    pub fn of_body(body: &[u8]) -> Self {
        Self(u128::from(xxh3_64(body)))
    }

    /// How strongly this key wants that replica: compared only with the same key's scores for others.
    pub(crate) fn score(self, replica: ReplicaId) -> u64 {
        let mut pair = [0; 24];
        pair[..16].copy_from_slice(&self.0.to_le_bytes());
        pair[16..].copy_from_slice(&replica.0.to_le_bytes());
        xxh3_64(&pair)
    }
}

impl From<SessionKey> for PlacementKey {
    fn from(key: SessionKey) -> Self {
        Self(key.0)
    }
}

impl From<PrefixKey> for PlacementKey {
    fn from(key: PrefixKey) -> Self {
        Self(u128::from(key.0))
    }
}

fn with_lengths(fields: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(fields.iter().map(|field| field.len() + 8).sum());
    for field in fields {
        bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
        bytes.extend_from_slice(field);
    }
    bytes
}

#[cfg(test)]
mod tests;
