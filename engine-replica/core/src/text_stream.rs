//! Token bytes to text deltas.

/// What the tokens of a vocabulary stand for.
pub trait TokenText: Send + Sync {
    /// The bytes that `token` adds to the text; they need not be whole characters. Empty for a token unknown to it.
    fn bytes(&self, token: u32) -> &[u8];
    /// Whether `token` is a mark of the format, such as the end of a turn, and no part of the text.
    fn is_special(&self, token: u32) -> bool;
}
