//! What a whole stream amounted to, gathered event by event.

use crate::chunk::{self, ChunkScan, FinishReason, Places, UsageScan};
use crate::json::ScanError;
use crate::sse::DONE_DATA;

/// The sum of a stream so far. The shell feeds it the data of each event and keeps the times itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamTally {
    /// The last usage reported. Some engines repeat a growing usage on every chunk, so it replaces, never adds.
    pub usage: Option<UsageScan>,
    /// The last finish reason reported.
    pub finish_reason: Option<FinishReason>,
    /// Whether `[DONE]` was met.
    pub done: bool,
    /// Whether an event carried an error.
    pub error: bool,
}

impl StreamTally {
    /// Takes the data of the next event; `None` for `[DONE]`, which ends the stream only when it is the whole data.
    ///
    /// # Errors
    /// Data that is not a JSON object; the tally stays as it was.
    pub fn absorb(&mut self, data: &[u8]) -> Result<Option<ChunkScan>, ScanError> {
        self.absorb_placed(data, &mut Places::default())
    }

    /// [`StreamTally::absorb`], with the places of what may be changed in the event.
    ///
    /// # Errors
    /// As [`StreamTally::absorb`].
    pub fn absorb_placed(
        &mut self,
        data: &[u8],
        places: &mut Places,
    ) -> Result<Option<ChunkScan>, ScanError> {
        if data == DONE_DATA {
            self.done = true;
            return Ok(None);
        }
        let seen = chunk::scan_placed(data, places)?;
        self.usage = seen.usage.or(self.usage);
        self.finish_reason = seen.finish_reason.or(self.finish_reason);
        self.error |= seen.error.is_some();
        Ok(Some(seen))
    }

    /// Whether the answer came to its end: a finish reason or `[DONE]`, and no error.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        (self.done || self.finish_reason.is_some()) && !self.error
    }
}

#[cfg(test)]
mod tests;
