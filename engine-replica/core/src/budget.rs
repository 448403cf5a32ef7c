//! How long an answer may think, and how long it has to: a fold over its tokens.
//!
//! It sees the tokens of the prompt after an open mark and then every token of the answer, and says what the next one
//! must be. Nothing else goes in, so batch, preemption and prefix hits cannot change it, and at temperature 0 and above
//! it holds alike.
//!
//! The budget is for all blocks of an answer together: one that opens again after it was closed by force is closed at
//! once. A mark that opens inside an open block is a token like any other, so a model cannot start its count anew.

use std::ops::AddAssign;
use std::sync::Arc;

use crate::answer_text::Thinking;
use crate::text_stream::Utf8Join;

/// Most tokens that thinking may go on beyond its budget to finish a character: no character has more bytes after its
/// first.
pub const CHARACTER_TOKENS_MAX: u32 = 3;
/// Most times that one answer is told to think on.
pub const PROLONGED_MAX: u32 = 2;
/// Tokens that a budget leaves for the answer behind the closing; half of what there is where that is less.
pub const ANSWER_TOKENS_MIN: u32 = 16;

/// What a model's thinking is steered with, as token ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThinkWords {
    /// Ends a block whose budget is used up: a message, the closing mark, and what the format has after it. The mark is
    /// in it.
    pub closing: Vec<u32>,
    /// Takes the place of a closing mark that comes too early; not empty.
    pub prolong: Vec<u32>,
    /// Opens a call of a tool, which ends a block as a closing mark does.
    pub tool: Option<u32>,
}

/// The bounds of one answer's thinking, in tokens between its marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThinkBudget {
    /// The model's.
    pub words: Arc<ThinkWords>,
    /// Most tokens, those that the prompt has after an open mark among them; `None` for no bound.
    pub most: Option<u32>,
    /// Least tokens, after which a closing mark is accepted; `most` goes before.
    pub least: u32,
}

impl ThinkBudget {
    /// Lowers the bound so that the closing and an answer behind it fit into `max_tokens`.
    pub fn fit(&mut self, start: Thinking, max_tokens: u32) {
        let Some(most) = &mut self.most else { return };
        let closing = u32::try_from(self.words.closing.len()).unwrap_or(u32::MAX);
        let opening = u32::from(!start.opened);
        let room = max_tokens.saturating_sub(closing).saturating_sub(opening);
        let room = room - ANSWER_TOKENS_MIN.min(room.div_ceil(2));
        *most = (*most).min(start.prompt_tokens.saturating_add(room));
    }
}

/// What has come of budgets; adds up over answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetCounts {
    /// Blocks whose budget was used up.
    pub reached: u64,
    /// Those of them that were closed by force; fewer where `max_tokens` or a client ended the answer before.
    pub closed: u64,
    /// Closing marks that came too early.
    pub prolonged: u64,
}

impl AddAssign for BudgetCounts {
    fn add_assign(&mut self, other: Self) {
        self.reached += other.reached;
        self.closed += other.closed;
        self.prolonged += other.prolonged;
    }
}

/// Where in the answer the next token falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Outside,
    Thinking,
    /// This many tokens of `prolong` have come.
    Prolonging(usize),
    /// This many tokens of `closing` have come.
    Closing(usize),
}

/// One answer under its budget.
#[derive(Debug)]
pub struct ThinkGuard {
    budget: ThinkBudget,
    start: Thinking,
    place: Place,
    /// Tokens of thinking so far.
    thought: u32,
    prolonged: u32,
    character: Utf8Join,
    counts: BudgetCounts,
}

impl ThinkGuard {
    /// Before the first token of an answer that begins as `start` says.
    pub fn new(budget: ThinkBudget, start: Thinking) -> Self {
        let mut guard = Self {
            budget,
            start,
            place: Place::Outside,
            thought: start.prompt_tokens,
            prolonged: 0,
            character: Utf8Join::default(),
            counts: BudgetCounts::default(),
        };
        if start.opened {
            guard.place = Place::Thinking;
            guard.close_if_used_up();
        }
        guard
    }

    /// What the next token must be; `None` where the model chooses.
    pub fn forced(&self) -> Option<u32> {
        let words = &self.budget.words;
        match self.place {
            Place::Outside | Place::Thinking => None,
            Place::Prolonging(at) => words.prolong.get(at).copied(),
            Place::Closing(at) => words.closing.get(at).copied(),
        }
    }

    /// Whether the next token is the replica's own ending of the block, and no thought.
    pub fn is_closing(&self) -> bool {
        matches!(self.place, Place::Closing(_))
    }

    /// The model has chosen `token`: whether it closes too early, so that `forced` now has another in its place.
    pub fn prolongs(&mut self, token: u32) -> bool {
        let early = self.place == Place::Thinking
            && token == self.start.tokens.close
            && self.thought < self.budget.least
            && self.prolonged < PROLONGED_MAX
            && !self.budget.words.prolong.is_empty();
        if early {
            self.prolonged += 1;
            self.counts.prolonged += 1;
            self.place = Place::Prolonging(0);
        }
        early
    }

    /// The next token, which is the one that `forced` names where it names one; `bytes` are its text.
    pub fn push(&mut self, token: u32, bytes: &[u8]) {
        let marks = self.start.tokens;
        match self.place {
            Place::Outside if token == marks.open => {
                self.place = Place::Thinking;
                self.character = Utf8Join::default();
            }
            Place::Outside => {}
            Place::Thinking if token == marks.close || Some(token) == self.budget.words.tool => {
                self.place = Place::Outside;
            }
            Place::Thinking => self.think(bytes),
            Place::Prolonging(at) => {
                let ended = at + 1 >= self.budget.words.prolong.len();
                self.place = if ended {
                    Place::Thinking
                } else {
                    Place::Prolonging(at + 1)
                };
                self.think(bytes);
            }
            Place::Closing(at) => {
                self.counts.reached += u64::from(at == 0);
                self.counts.closed += u64::from(token == marks.close);
                let ended = at + 1 >= self.budget.words.closing.len();
                self.place = if ended {
                    Place::Outside
                } else {
                    Place::Closing(at + 1)
                };
            }
        }
        self.close_if_used_up();
    }

    /// What has come of the budget since this was asked last.
    pub fn take_counts(&mut self) -> BudgetCounts {
        std::mem::take(&mut self.counts)
    }

    fn think(&mut self, bytes: &[u8]) {
        self.thought = self.thought.saturating_add(1);
        self.character.push(bytes);
    }

    fn close_if_used_up(&mut self) {
        let Some(most) = self.budget.most else { return };
        let is_open = matches!(self.place, Place::Thinking | Place::Prolonging(_));
        let beyond = self.thought.checked_sub(most);
        if is_open
            && beyond
                .is_some_and(|beyond| self.character.is_whole() || beyond >= CHARACTER_TOKENS_MAX)
        {
            self.place = Place::Closing(0);
        }
    }
}

#[cfg(test)]
mod tests;
