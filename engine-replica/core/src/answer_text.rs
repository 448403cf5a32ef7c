//! An answer's reasoning and its content, told apart by the tokens that mark them.
//!
//! Marks are token ids, so neither a `</think>` that a model spells out in letters nor one in a client's text is one.
//! Reasoning stands at the beginning of an answer: one block, or several with nothing between them. Whatever comes after
//! it is content.
//!
//! One newline after the opening mark and the newlines right round the closing one belong to the format and to neither
//! part. Stop strings are looked for in the content alone: a line break that ends an answer must not end the thought.

use crate::text_stream::{TextDelta, TextStream, TokenText};

/// The tokens round a block of reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinkTokens {
    /// `<think>`.
    pub open: u32,
    /// `</think>`.
    pub close: u32,
}

impl ThinkTokens {
    /// How an answer to `prompt` begins. Only what the template wrote after the last special token counts: a client may
    /// write a mark in a message, but no special token.
    pub fn after(self, prompt: &[u32], vocabulary: &dyn TokenText) -> Thinking {
        let is_mark = |token: u32| token == self.open || token == self.close;
        let last = prompt
            .iter()
            .rev()
            // Some vocabularies have the marks themselves for special tokens.
            .take_while(|&&token| is_mark(token) || !vocabulary.is_special(token))
            .enumerate()
            .find(|&(_, &token)| is_mark(token))
            .filter(|&(_, &token)| token == self.open);
        Thinking {
            tokens: self,
            opened: last.is_some(),
            prompt_tokens: last.map_or(0, |(after, _)| u32::try_from(after).unwrap_or(u32::MAX)),
        }
    }
}

/// How one answer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thinking {
    /// The model's marks.
    pub tokens: ThinkTokens,
    /// The prompt ends inside a block of reasoning. If not, the answer's first token may open one.
    pub opened: bool,
    /// Tokens that the prompt has after the mark that opens that block; 0 without one.
    pub prompt_tokens: u32,
}

/// What a piece of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    /// What the model thinks before it answers; its marks are counted here.
    Reasoning,
    /// The answer itself.
    Content,
}

/// Text that may be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerDelta {
    /// Which part the token and its text belong to; never `Reasoning` again once it was `Content`.
    pub part: AnswerPart,
    /// May be empty.
    pub text: String,
    /// A stop string has come: the content ends before it, and nothing follows.
    pub stopped: bool,
}

impl AnswerDelta {
    fn reasoning(text: String) -> Self {
        Self {
            part: AnswerPart::Reasoning,
            text,
            stopped: false,
        }
    }
}

/// Where in the answer the next token falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Before the first token.
    Start,
    Reasoning,
    /// Right after the closing mark, where newlines are dropped.
    Closed,
    Content,
}

/// The text of one answer in its two parts.
#[derive(Debug)]
pub struct AnswerText {
    tokens: Option<ThinkTokens>,
    part: Part,
    reasoning: TextStream,
    content: TextStream,
    /// Nothing of the reasoning has come yet, so one newline may be dropped.
    reasoning_is_new: bool,
    /// Newlines that end the reasoning so far: dropped if the closing mark comes next.
    newlines_held: usize,
    reasoning_tokens: u32,
}

impl AnswerText {
    /// For a model without marks (`None`) all is content. The first of `stop_strings` in the content ends it.
    pub fn new(thinking: Option<Thinking>, stop_strings: Vec<String>) -> Self {
        let part = match thinking {
            None => Part::Content,
            Some(Thinking { opened: true, .. }) => Part::Reasoning,
            Some(Thinking { opened: false, .. }) => Part::Start,
        };
        Self {
            tokens: thinking.map(|thinking| thinking.tokens),
            part,
            reasoning: TextStream::new(Vec::new(), false),
            content: TextStream::new(stop_strings, false),
            reasoning_is_new: true,
            newlines_held: 0,
            reasoning_tokens: 0,
        }
    }

    /// Adds a token.
    pub fn push(&mut self, token: u32, vocabulary: &dyn TokenText) -> AnswerDelta {
        let is = |mark: fn(ThinkTokens) -> u32| self.tokens.map(mark) == Some(token);
        match self.part {
            Part::Start if is(|tokens| tokens.open) => {
                self.part = Part::Reasoning;
                return AnswerDelta::reasoning(String::new());
            }
            Part::Reasoning if is(|tokens| tokens.close) => {
                self.part = Part::Closed;
                return AnswerDelta::reasoning(self.reasoning.finish().text);
            }
            // Nothing of the content has come yet, so the model thinks on; a line break tells the blocks apart.
            Part::Closed if is(|tokens| tokens.open) => {
                self.part = Part::Reasoning;
                self.newlines_held =
                    usize::from(!std::mem::replace(&mut self.reasoning_is_new, true));
                return AnswerDelta::reasoning(String::new());
            }
            Part::Start => self.part = Part::Content,
            Part::Reasoning => self.reasoning_tokens += 1,
            Part::Closed | Part::Content => {}
        }
        let bytes = if vocabulary.is_special(token) {
            &[]
        } else {
            vocabulary.bytes(token)
        };
        if self.part == Part::Reasoning {
            AnswerDelta::reasoning(self.reason(bytes))
        } else {
            self.tell(bytes)
        }
    }

    /// Adds a token that the replica wrote itself to end the reasoning: text as any, and no token of reasoning.
    pub fn push_closing(&mut self, token: u32, vocabulary: &dyn TokenText) -> AnswerDelta {
        let thought = self.reasoning_tokens;
        let delta = self.push(token, vocabulary);
        self.reasoning_tokens = thought;
        delta
    }

    /// Ends the answer: what was held back comes out.
    pub fn finish(&mut self) -> AnswerDelta {
        if self.part == Part::Reasoning {
            let mut text = self.reasoning.finish().text;
            text.extend(std::iter::repeat_n('\n', self.newlines_held));
            self.newlines_held = 0;
            return AnswerDelta::reasoning(text);
        }
        let TextDelta { text, stopped } = self.content.finish();
        AnswerDelta {
            part: AnswerPart::Content,
            text,
            stopped,
        }
    }

    /// Tokens of the reasoning, without its marks and without what the replica wrote to end it.
    pub fn reasoning_tokens(&self) -> u32 {
        self.reasoning_tokens
    }

    fn reason(&mut self, mut bytes: &[u8]) -> String {
        if let Some((first, rest)) = bytes.split_first()
            && std::mem::take(&mut self.reasoning_is_new)
            && *first == b'\n'
        {
            bytes = rest;
        }
        let Some(last) = bytes.iter().rposition(|&byte| byte != b'\n') else {
            self.newlines_held += bytes.len();
            return String::new();
        };
        let mut text = self
            .reasoning
            .push_bytes(&vec![b'\n'; self.newlines_held])
            .text;
        self.newlines_held = bytes.len() - last - 1;
        text += &self.reasoning.push_bytes(&bytes[..=last]).text;
        text
    }

    fn tell(&mut self, mut bytes: &[u8]) -> AnswerDelta {
        if self.part == Part::Closed {
            let newlines = bytes.iter().take_while(|&&byte| byte == b'\n').count();
            bytes = &bytes[newlines..];
            if bytes.is_empty() {
                // Still of the format, and the reasoning may go on.
                return AnswerDelta::reasoning(String::new());
            }
            self.part = Part::Content;
        }
        let TextDelta { text, stopped } = self.content.push_bytes(bytes);
        AnswerDelta {
            part: AnswerPart::Content,
            text,
            stopped,
        }
    }
}

#[cfg(test)]
mod tests;
