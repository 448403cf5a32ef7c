//! Where the parts of an answer lie that the gateway may have to change. All are byte ranges of the scanned text.

use std::ops::Range;

/// The places of one scan. A reader of many chunks keeps one and has it filled anew: that costs no memory of its own.
#[derive(Debug, Default)]
pub struct Places {
    /// The value of `id` where it is a string.
    pub(crate) id: Option<Range<usize>>,
    /// The value of `choices`, brackets included, where it is an array.
    pub(crate) choices: Option<Range<usize>>,
    /// Its elements, in their order.
    pub(crate) each: Vec<ChoicePlaces>,
    /// The value of `usage` where it is an object.
    pub(crate) usage: Option<ObjectPlace>,
    /// The value of its `completion_tokens_details` where it is an object.
    pub(crate) details: Option<ObjectPlace>,
    /// That value where it is something else, such as null.
    pub(crate) no_details: Option<Range<usize>>,
    /// The value of its `reasoning_tokens`.
    pub(crate) reasoning_tokens: Option<Range<usize>>,
}

impl Places {
    pub(crate) fn clear(&mut self) {
        self.each.clear();
        let each = std::mem::take(&mut self.each);
        *self = Self {
            each,
            ..Self::default()
        };
    }
}

/// An object.
#[derive(Clone, Debug)]
pub(crate) struct ObjectPlace {
    /// Its braces and what is between them.
    pub(crate) span: Range<usize>,
    /// Whether it has any member.
    pub(crate) has_fields: bool,
}

/// One choice.
#[derive(Debug, Default)]
pub(crate) struct ChoicePlaces {
    /// Its `index`.
    pub(crate) index: Option<u64>,
    /// The value of `delta` or `message` where it is an object.
    pub(crate) message: Option<ObjectPlace>,
    pub(crate) content: Option<Member>,
    pub(crate) reasoning_content: Option<Member>,
    pub(crate) reasoning: Option<Member>,
    /// Values of further fields in which engines put reasoning.
    pub(crate) traces: Vec<Range<usize>>,
    /// The value of `tool_calls` where it holds something.
    pub(crate) tool_calls: Option<Range<usize>>,
    /// The value of `role` where it is a string.
    pub(crate) role: Option<Range<usize>>,
    /// Something else in the message that is not null.
    pub(crate) rest: bool,
    /// The value of `finish_reason` where it is a string.
    pub(crate) finish_reason: Option<Range<usize>>,
    /// Values that spell the tokens out: `logprobs`, `token_ids`; only those that are not null.
    pub(crate) spelled: Vec<Range<usize>>,
}

/// A member of an object.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// Where its key begins, with the quote.
    pub(crate) start: usize,
    pub(crate) value: Range<usize>,
    /// Whether the value is a string with something in it.
    pub(crate) text: bool,
    /// Whether the value is a string at all.
    pub(crate) string: bool,
}

impl Member {
    /// The whole member.
    pub(crate) fn span(&self) -> Range<usize> {
        self.start..self.value.end
    }
}
