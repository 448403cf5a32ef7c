//! An answer's reasoning and its content, told apart by the tokens that mark them.
//!
//! Marks are token ids, so neither a `</think>` that a model spells out in letters nor one in a client's text is one.
//! An answer has one block of reasoning at most, at its beginning; whatever comes after it is content.
//!
//! One newline after the opening mark and the newlines right round the closing one belong to the format and to neither
//! part. Stop strings are looked for in the content alone: a line break that ends an answer must not end the thought.

use crate::text_stream::{TextStream, TokenText};

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
        let last = prompt
            .iter()
            .rev()
            .take_while(|&&token| !vocabulary.is_special(token))
            .find(|&&token| token == self.open || token == self.close);
        Thinking {
            tokens: self,
            opened: last == Some(&self.open),
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
}

/// Text that may be sent now; either part may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerDelta {
    /// Comes before `content`.
    pub reasoning: String,
    /// The answer itself.
    pub content: String,
    /// A stop string has come: `content` ends before it, and nothing follows.
    pub stopped: bool,
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
                return AnswerDelta::default();
            }
            Part::Reasoning if is(|tokens| tokens.close) => {
                self.part = Part::Closed;
                return AnswerDelta {
                    reasoning: self.reasoning.finish().text,
                    ..AnswerDelta::default()
                };
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
            AnswerDelta {
                reasoning: self.reason(bytes),
                ..AnswerDelta::default()
            }
        } else {
            self.tell(bytes)
        }
    }

    /// Ends the answer: what was held back comes out.
    pub fn finish(&mut self) -> AnswerDelta {
        let mut reasoning = String::new();
        if self.part == Part::Reasoning {
            reasoning = self.reasoning.finish().text;
            reasoning.extend(std::iter::repeat_n('\n', self.newlines_held));
            self.newlines_held = 0;
        }
        let content = self.content.finish();
        AnswerDelta {
            reasoning,
            content: content.text,
            stopped: content.stopped,
        }
    }

    /// Tokens of the reasoning, without its marks.
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
            if !bytes.is_empty() {
                self.part = Part::Content;
            }
        }
        let delta = self.content.push_bytes(bytes);
        AnswerDelta {
            reasoning: String::new(),
            content: delta.text,
            stopped: delta.stopped,
        }
    }
}

#[cfg(test)]
mod tests;
