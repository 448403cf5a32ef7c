//! The seam between the API and a model's own way of writing a conversation.

use std::sync::Arc;

use replica_core::answer_text::Thinking;
use replica_core::budget::ThinkWords;

use super::request::ChatRequest;
use crate::failure::Failure;

/// A model's chat template and tokenizer together.
pub trait ChatFormat: Send + Sync {
    /// The token ids of the rendered conversation; never empty.
    ///
    /// # Errors
    /// `Template` when the template refuses the messages.
    fn prompt(&self, request: &ChatRequest) -> Result<Vec<u32>, Failure>;

    /// How an answer to this prompt begins; `None` for a model that does not mark its reasoning.
    fn thinking(&self, prompt: &[u32]) -> Option<Thinking>;

    /// What thinking is ended and prolonged with, for every model with `thinking`.
    fn think_words(&self) -> Option<Arc<ThinkWords>>;
}
