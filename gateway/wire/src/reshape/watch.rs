//! Counts a thought while it is written, so that it can be cut at a limit, and makes one answer of the two streams that it then comes in.

use super::patch::Patch;
use crate::chunk::{ChunkScan, ObjectPlace, Places, UsageScan};

/// Most bytes of a thought that are kept to be continued. A longer one is not cut any more.
pub(super) const WATCHED_BYTES_MAX: usize = 4 << 20;
/// Bytes that a token hardly ever exceeds: a chunk of more text has been several.
const TOKEN_BYTES_MAX: usize = 16;

/// How much was thought.
#[derive(Debug, Default)]
pub struct Watch {
    tokens: u64,
    /// Chunks held back since the last that was told: they turn out to be of the thought, or of its end.
    pending: u64,
    /// The last chunk was of the thought alone.
    thinking: bool,
    /// Tokens when the first stream was cut.
    cut: Option<u64>,
    /// The first stream's `id`, as it is written.
    id: Option<Vec<u8>>,
    /// What the first stream told of its usage, where it told before its end.
    usage: Option<UsageScan>,
}

impl Watch {
    /// Tokens of thought so far: chunks, of which engines send one a token, or more where a chunk is too long for one.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Whether the last event was of the thought alone, so that a cut behind it takes nothing of the answer.
    #[must_use]
    pub const fn is_thinking(&self) -> bool {
        self.thinking
    }

    pub(super) const fn resumed(&self) -> bool {
        self.cut.is_some()
    }

    pub(super) fn resume(&mut self) {
        self.cut = Some(self.tokens);
        (self.thinking, self.pending) = (false, 0);
    }

    /// The next event: the first stream's id is kept, and a further stream's becomes it.
    pub(super) fn begin(
        &mut self,
        data: &[u8],
        seen: &ChunkScan,
        places: &Places,
        patch: &mut Patch,
    ) {
        self.thinking = false;
        if !self.resumed() {
            self.usage = seen.usage.or(self.usage);
        }
        let Some(span) = &places.id else { return };
        match &self.id {
            None => self.id = data.get(span.clone()).map(<[u8]>::to_vec),
            Some(id) if self.resumed() => {
                patch.replace(span.clone(), |out| out.extend_from_slice(id));
            }
            Some(_) => {}
        }
    }

    /// One choice of an event: bytes of thought that it told, whether it told of the answer or was the last, and whether it had text at
    /// all behind the beginning of a thought.
    pub(super) fn count(&mut self, thought: usize, answers: bool, written: bool) {
        if thought > 0 {
            let chunk = thought.div_ceil(TOKEN_BYTES_MAX).max(1) as u64;
            self.tokens = self.tokens.saturating_add(chunk.max(self.pending + 1));
            self.pending = 0;
        } else if answers {
            self.pending = 0;
        } else if written {
            self.pending = self.pending.saturating_add(1);
        }
        self.thinking = thought > 0 && !answers;
    }

    /// The usage of both streams: the second one's prompt had the thought in it, which is of the answer. What of the prompt was cached
    /// is not known, as the first stream was cut before it told.
    pub(super) fn merge(&self, usage: &mut UsageScan, place: &ObjectPlace, patch: &mut Patch) {
        let cut = self.cut.unwrap_or(0);
        let told = self.usage.map(|usage| usage.prompt_tokens);
        let prompt = told.unwrap_or(usage.prompt_tokens.saturating_sub(cut));
        let completion = usage.total_tokens.saturating_sub(prompt);
        let reasoning = cut.saturating_add(usage.reasoning_tokens.unwrap_or(0));
        *usage = UsageScan {
            prompt_tokens: prompt,
            completion_tokens: completion,
            total_tokens: usage.total_tokens,
            cached_tokens: None,
            reasoning_tokens: Some(reasoning.min(completion)),
        };
        let text = format!(
            "{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\"total_tokens\":{},\"completion_tokens_details\":{{\"reasoning_tokens\":{}}}}}",
            usage.total_tokens,
            reasoning.min(completion)
        );
        patch.replace(place.span.clone(), |out| {
            out.extend_from_slice(text.as_bytes());
        });
    }
}
