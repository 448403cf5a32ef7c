//! Reasoning between an opener and a closer.

use std::sync::Arc;

use super::{Fit, Machine, Piece, Sink, Start};
use crate::families::{Opener, Tags};

/// Newlines that are given on at a time.
const NEWLINES: &str = "\n\n\n\n\n\n\n\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Reasoning,
    Content,
}

/// What becomes of newlines before the first text after a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leading {
    Keep,
    DropOne,
    DropAll,
}

/// What a marker is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mark {
    Newline,
    Open,
    /// An opener that the prompt has already, or a closer before anything else.
    Stray,
    Close,
    Tool,
    /// With the place of its pair.
    AnswerOpen(usize),
    AnswerClose,
}

#[derive(Debug)]
pub(super) struct Blocks {
    tags: Arc<Tags>,
    /// The bytes that markers begin with.
    firsts: Vec<u8>,
    field: Field,
    /// Thinking is on, and no closed block in the prompt says otherwise.
    on: bool,
    /// Nothing but newlines came yet in this answer.
    untouched: bool,
    /// A marker that repeats the prompt's was seen; there is at most one.
    stray: bool,
    /// A block of reasoning was seen, in the prompt or after it.
    block: bool,
    /// The wrapper that the answer is in.
    wrapped: Option<usize>,
    /// Nothing but newlines came since the last marker.
    fresh: bool,
    leading: Leading,
    /// Newlines held back, as they go if a marker follows.
    newlines: usize,
}

impl Blocks {
    pub(super) fn new(tags: &Arc<Tags>, start: Start<'_>) -> Self {
        let mut firsts: Vec<u8> = tags
            .markers()
            .filter_map(|marker| marker.bytes().next())
            .collect();
        firsts.sort_unstable();
        firsts.dedup();
        let mut blocks = Self {
            tags: tags.clone(),
            firsts,
            field: Field::Content,
            on: start.thinking.unwrap_or(tags.thinking),
            untouched: true,
            stray: false,
            block: false,
            wrapped: None,
            fresh: true,
            leading: Leading::Keep,
            newlines: 0,
        };
        match start.prompt_tail {
            Some(tail) => blocks.after(tail),
            None if tags.opener == Opener::Template && blocks.on => blocks.open(Leading::DropOne),
            None if tags.opener == Opener::Template => blocks.leading = Leading::DropAll,
            None => {}
        }
        blocks
    }

    /// Goes where the prompt's last marker leads.
    fn after(&mut self, tail: &str) {
        let last = |markers: &[String]| {
            let found = markers
                .iter()
                .filter_map(|marker| Some((tail.rfind(&**marker)?, marker.len())));
            found.max()
        };
        let (open, close) = (last(&self.tags.open), last(&self.tags.close));
        let Some((at, length)) = open.max(close) else {
            return;
        };
        let rest = tail.get(at + length..).unwrap_or("");
        let text_follows = !rest.trim().is_empty();
        if open > close {
            let leading = if rest.is_empty() {
                Leading::DropOne
            } else {
                Leading::Keep
            };
            self.open(leading);
        } else {
            self.on = false;
            self.leading = Leading::DropAll;
            self.block = text_follows;
        }
        if text_follows {
            (self.untouched, self.fresh, self.leading) = (false, false, Leading::Keep);
        }
    }

    fn open(&mut self, leading: Leading) {
        (self.field, self.block, self.fresh, self.leading) =
            (Field::Reasoning, true, true, leading);
    }

    fn opener_counts(&self) -> bool {
        self.tags.reopen || (!self.block && (self.on || self.untouched))
    }

    /// Whether a newline may turn out to belong to a marker.
    const fn holds_newlines(&self) -> bool {
        matches!(self.field, Field::Reasoning) || self.fresh || self.wrapped.is_some()
    }

    fn give(&self, text: &str, sink: &mut Sink<'_>) {
        match self.field {
            Field::Reasoning => sink(Piece::Reasoning(text)),
            Field::Content => sink(Piece::Content(text)),
        }
    }

    /// Gives the newlines on that were held back: the first `dropped` to nobody.
    fn newlines(&mut self, dropped: usize, sink: &mut Sink<'_>) {
        let mut dropped = dropped.min(self.newlines);
        let mut kept = self.newlines - dropped;
        self.newlines = 0;
        while dropped > 0 {
            let some = dropped.min(NEWLINES.len());
            sink(Piece::Markup(NEWLINES.get(..some).unwrap_or("")));
            dropped -= some;
        }
        while kept > 0 {
            let some = kept.min(NEWLINES.len());
            self.give(NEWLINES.get(..some).unwrap_or(""), sink);
            kept -= some;
        }
    }

    /// Newlines before text or the end, which no marker follows.
    fn settle(&mut self, sink: &mut Sink<'_>) {
        let dropped = match self.leading {
            _ if !self.fresh => 0,
            Leading::Keep => 0,
            Leading::DropOne => 1,
            Leading::DropAll => usize::MAX,
        };
        self.newlines(dropped, sink);
    }
}

impl Machine for Blocks {
    type Mark = Mark;

    fn begins(&self, byte: u8) -> bool {
        self.firsts.contains(&byte) || (byte == b'\n' && self.holds_newlines())
    }

    fn fit(&self, text: &str) -> Fit<Mark> {
        let mut fit = Fit::new();
        let mut add = |markers: &[String], mark: Mark| {
            for marker in markers {
                fit.add(text, marker, mark);
            }
        };
        let stray = self.untouched && !self.stray;
        if self.field == Field::Reasoning {
            add(&self.tags.close, Mark::Close);
            add(&self.tags.tools, Mark::Tool);
            if stray {
                add(&self.tags.open, Mark::Stray);
            }
        } else {
            if self.opener_counts() {
                add(&self.tags.open, Mark::Open);
            }
            if stray {
                add(&self.tags.close, Mark::Stray);
            }
            for (place, [before, after]) in self.tags.answer.iter().enumerate() {
                if self.wrapped == Some(place) {
                    fit.add(text, after, Mark::AnswerClose);
                } else if self.wrapped.is_none() && self.fresh {
                    fit.add(text, before, Mark::AnswerOpen(place));
                }
            }
        }
        if text.starts_with('\n') {
            fit.whole = Some((1, Mark::Newline));
        }
        fit
    }

    fn mark(&mut self, mark: Mark, text: &str, sink: &mut Sink<'_>) {
        if matches!(mark, Mark::Newline) {
            if self.holds_newlines() {
                self.newlines += 1;
            } else {
                self.give(text, sink);
            }
            return;
        }
        self.newlines(usize::MAX, sink);
        match mark {
            Mark::Tool => sink(Piece::Content(text)),
            _ => sink(Piece::Markup(text)),
        }
        self.fresh = true;
        self.leading = Leading::DropAll;
        match mark {
            Mark::Newline => {}
            Mark::Open => self.open(Leading::DropOne),
            Mark::Stray => {
                self.stray = true;
                if self.field == Field::Reasoning {
                    self.leading = Leading::DropOne;
                }
                return;
            }
            Mark::Close => self.field = Field::Content,
            Mark::Tool => {
                (self.field, self.fresh) = (Field::Content, false);
            }
            Mark::AnswerOpen(place) => self.wrapped = Some(place),
            Mark::AnswerClose => self.wrapped = None,
        }
        self.untouched = false;
    }

    fn plain(&mut self, text: &str, sink: &mut Sink<'_>) {
        self.settle(sink);
        (self.fresh, self.untouched) = (false, false);
        self.give(text, sink);
    }

    fn end(&mut self, sink: &mut Sink<'_>) {
        self.settle(sink);
    }
}
