//! A request body made of shared parts.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

/// A body of known length whose parts are sent one after the other without a copy.
pub(crate) struct Parts {
    parts: VecDeque<Bytes>,
    left: u64,
}

impl Parts {
    /// The body that `parts` make together.
    pub(crate) fn new(parts: VecDeque<Bytes>) -> Self {
        let left = parts.iter().map(|part| part.len() as u64).sum();
        Self { parts, left }
    }

    /// Bytes that are yet to be sent.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The whole text, for tests that read it.
    #[cfg(test)]
    pub(crate) fn concat(&self) -> Vec<u8> {
        self.parts
            .iter()
            .flat_map(|part| part.iter().copied())
            .collect()
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.parts.pop_front();
        self.left -= part.as_ref().map_or(0, |part| part.len() as u64);
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
