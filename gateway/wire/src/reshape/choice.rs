//! One choice of an answer: its splitter, and what goes out of it next.

use super::watch::WATCHED_BYTES_MAX;
use super::{Plan, Shown};
use crate::families::Grammar;
use crate::split::{Piece, Splitter, Start};

/// White space that is held back at the beginning of a field, in bytes: a field without a letter is none.
const BLANK_BYTES_MAX: usize = 1024;

/// The text of one field.
#[derive(Debug, Default)]
pub(super) struct Field {
    /// White space at its beginning, as long as nothing else has come.
    blank: String,
    begun: bool,
    /// What goes out with this event.
    pub(super) text: String,
}

impl Field {
    fn push(&mut self, piece: &str) {
        if self.begun {
            self.text.push_str(piece);
        } else if piece.trim_start().is_empty() && self.blank.len() + piece.len() <= BLANK_BYTES_MAX
        {
            self.blank.push_str(piece);
        } else {
            self.begun = true;
            self.text.push_str(&self.blank);
            self.text.push_str(piece);
            self.blank = String::new();
        }
    }
}

/// The state of one choice.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) index: u64,
    /// `None` where all text is the answer.
    splitter: Option<Splitter>,
    /// The replica has told reasoning in a field of its own.
    pub(super) engine: bool,
    pub(super) reasoning: Field,
    pub(super) content: Field,
    /// Letters of reasoning that were kept from the client and not told of yet.
    untold: usize,
    /// A tool call was seen.
    pub(super) tools: bool,
    /// Bytes of reasoning that were split off here from this event.
    pub(super) thought: usize,
    /// Something in this event was no answer text: reasoning, a marker, or text that is held back.
    pub(super) mixed: bool,
    /// All reasoning so far as it was written, where somebody wants to have it continued.
    pub(super) kept: Option<String>,
    /// This goes on with an answer whose beginning came from another stream.
    pub(super) resumed: bool,
}

impl Choice {
    pub(super) fn new(index: u64, plan: &Plan) -> Self {
        let start = Start {
            prompt_tail: None,
            thinking: plan.thinking,
        };
        let splitter = match plan.grammar {
            Grammar::None => None,
            _ if plan.engine_splits => leftovers(&plan.grammar),
            _ => Some(Splitter::new(&plan.grammar, start)),
        };
        Self {
            index,
            splitter,
            engine: false,
            reasoning: Field::default(),
            content: Field::default(),
            untold: 0,
            tools: false,
            thought: 0,
            mixed: false,
            kept: None,
            resumed: false,
        }
    }

    /// Goes on behind a thought that was closed from outside.
    pub(super) fn resume(&mut self, plan: &Plan) {
        self.resumed = true;
        self.splitter = match &plan.grammar {
            grammar if self.engine || plan.engine_splits => leftovers(grammar),
            Grammar::None => None,
            grammar => {
                let start = Start {
                    prompt_tail: Some(closer(grammar)),
                    thinking: Some(false),
                };
                Some(Splitter::new(grammar, start))
            }
        };
    }

    /// Keeps reasoning as it was written.
    pub(super) fn keep(&mut self, text: &str) {
        if let Some(kept) = &mut self.kept
            && kept.len() + text.len() <= WATCHED_BYTES_MAX
        {
            kept.push_str(text);
        }
    }

    /// Whether any text of the answer went out.
    pub(super) const fn answers(&self) -> bool {
        self.content.begun
    }

    /// Ready for the next event.
    pub(super) fn clear(&mut self) {
        self.reasoning.text.clear();
        self.content.text.clear();
        (self.thought, self.mixed) = (0, false);
    }

    /// The replica has filled a field for reasoning: from here on the split is its own.
    pub(super) fn split_by_engine(&mut self, plan: &Plan) {
        if !std::mem::replace(&mut self.engine, true) {
            self.end(plan);
            self.splitter = leftovers(&plan.grammar);
        }
    }

    /// Reasoning that the replica split off, of which only the length is of interest.
    pub(super) fn hide(&mut self, letters: usize) {
        self.untold += letters;
    }

    /// Text of the answer's field.
    pub(super) fn push(&mut self, text: &str, plan: &Plan) {
        match self.splitter.take() {
            Some(mut splitter) => {
                splitter.push(text, &mut |piece| self.take(piece, plan));
                self.mixed |= self.content.text.len() != text.len();
                self.splitter = Some(splitter);
            }
            None if matches!(plan.grammar, Grammar::None) => self.content.text.push_str(text),
            None => self.content.push(text),
        }
    }

    /// The end of the choice: what is held back goes out.
    pub(super) fn end(&mut self, plan: &Plan) {
        if let Some(splitter) = self.splitter.take() {
            splitter.finish(&mut |piece| self.take(piece, plan));
        }
    }

    /// Where reasoning is only counted and something else follows: says how much it was.
    pub(super) fn tell(&mut self, ended: bool) {
        let follows = ended || self.tools || !self.content.text.is_empty();
        if self.untold > 0 && follows {
            let letters = std::mem::take(&mut self.untold);
            self.reasoning.text = format!("{letters} characters of reasoning");
        }
    }

    fn take(&mut self, piece: Piece<'_>, plan: &Plan) {
        match piece {
            Piece::Content(text) => self.content.push(text),
            // What the replica has told already is not told again.
            Piece::Reasoning(_) if self.engine => {}
            Piece::Reasoning(text) => {
                self.thought += text.len();
                self.keep(text);
                match plan.shown {
                    Shown::Field => self.reasoning.push(text),
                    Shown::Hidden => {}
                    Shown::Summary => self.untold += text.chars().count(),
                }
            }
            Piece::Markup(_) => {}
        }
    }
}

/// The usual closer of a family.
fn closer(grammar: &Grammar) -> &str {
    match grammar {
        Grammar::Tags(tags) => tags.close.first().map_or("", |close| close),
        Grammar::None | Grammar::Channels => "",
    }
}

/// For an answer that its replica has split: markers that it left at the beginning of the answer.
fn leftovers(grammar: &Grammar) -> Option<Splitter> {
    let start = Start {
        prompt_tail: Some(""),
        thinking: Some(false),
    };
    match grammar {
        Grammar::Tags(tags) if !tags.reopen => Some(Splitter::new(grammar, start)),
        _ => None,
    }
}
