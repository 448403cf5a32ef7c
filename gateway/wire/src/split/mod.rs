//! Reasoning split from the answer, in a stream of text: the markers of a family found however the text was cut.
//!
//! Held back is only the longest end of the text that can still become a marker which counts where the stream stands, newlines that
//! belong to a marker if one follows, and with channels the head of a message. What stood between belongs to no field: [`Piece::Markup`].

mod channels;
mod tags;

use crate::families::Grammar;
use channels::Channels;
use tags::Blocks;

/// A part of the text, in the order in which it was written. All parts together are the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Reasoning.
    Reasoning(&'a str),
    /// The answer, tool calls in the family's own markup among it.
    Content(&'a str),
    /// Markers and the newlines beside them: for no reader.
    Markup(&'a str),
}

/// Where a stream begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start<'a> {
    /// What the template wrote after the last message; a marker in it decides over `thinking`. None where the prompt is not known.
    pub prompt_tail: Option<&'a str>,
    /// Whether thinking is on for this request; the family's default where nobody said.
    pub thinking: Option<bool>,
}

/// Where pieces go.
type Sink<'s> = dyn FnMut(Piece<'_>) + 's;

/// What stands at the beginning of some text.
struct Fit<M> {
    /// The longest whole marker: its bytes and what it is.
    whole: Option<(usize, M)>,
    /// More text could make a longer marker of it.
    open: bool,
}

impl<M> Fit<M> {
    const fn new() -> Self {
        Self {
            whole: None,
            open: false,
        }
    }

    fn add(&mut self, text: &str, marker: &str, is: M) {
        if text.starts_with(marker) {
            if self
                .whole
                .as_ref()
                .is_none_or(|(most, _)| *most < marker.len())
            {
                self.whole = Some((marker.len(), is));
            }
        } else if marker.starts_with(text) {
            self.open = true;
        }
    }
}

/// What a style of marking does with what was found.
trait Machine {
    /// What a marker is to this style.
    type Mark;
    /// Whether a marker can begin with this byte.
    fn begins(&self, byte: u8) -> bool;
    /// The markers that count now.
    fn fit(&self, text: &str) -> Fit<Self::Mark>;
    /// A marker that counts.
    fn mark(&mut self, mark: Self::Mark, text: &str, sink: &mut Sink<'_>);
    /// Text that is no marker; not empty.
    fn plain(&mut self, text: &str, sink: &mut Sink<'_>);
    /// The end.
    fn end(&mut self, sink: &mut Sink<'_>);
}

#[derive(Debug)]
enum Style {
    None,
    Tags(Blocks),
    Channels(Channels),
}

/// The state of one choice of one answer.
#[derive(Debug)]
pub struct Splitter {
    style: Style,
    /// Text that can still become a marker; shorter than the longest marker.
    held: String,
}

impl Splitter {
    /// At the beginning of an answer.
    #[must_use]
    pub fn new(grammar: &Grammar, start: Start<'_>) -> Self {
        let style = match grammar {
            Grammar::None => Style::None,
            Grammar::Tags(tags) => Style::Tags(Blocks::new(tags, start)),
            Grammar::Channels => Style::Channels(Channels::new(start)),
        };
        Self {
            style,
            held: String::new(),
        }
    }

    /// More of the text, cut anywhere between letters.
    pub fn push(&mut self, text: &str, sink: &mut impl FnMut(Piece<'_>)) {
        self.run(text, false, sink);
    }

    /// The end of the text: what was held back goes to the field it is in.
    pub fn finish(mut self, sink: &mut impl FnMut(Piece<'_>)) {
        self.run("", true, sink);
        match &mut self.style {
            Style::None => {}
            Style::Tags(blocks) => blocks.end(sink),
            Style::Channels(channels) => channels.end(sink),
        }
    }

    fn run(&mut self, text: &str, last: bool, sink: &mut Sink<'_>) {
        let mut whole = std::mem::take(&mut self.held);
        let joined = if whole.is_empty() {
            text
        } else {
            whole.push_str(text);
            &whole
        };
        let rest = match &mut self.style {
            Style::None => {
                give(joined, sink, Piece::Content);
                ""
            }
            Style::Tags(blocks) => scan(blocks, joined, last, sink),
            Style::Channels(channels) => scan(channels, joined, last, sink),
        };
        self.held = rest.to_owned();
    }
}

/// Takes the text apart and gives back the end of it that can still become a marker.
fn scan<'t, M: Machine>(
    machine: &mut M,
    mut text: &'t str,
    last: bool,
    sink: &mut Sink<'_>,
) -> &'t str {
    while !text.is_empty() {
        let at = text.bytes().position(|byte| machine.begins(byte));
        let (before, found) = text.split_at(at.unwrap_or(text.len()));
        if !before.is_empty() {
            machine.plain(before, sink);
        }
        let Some(letter) = found.chars().next() else {
            break;
        };
        let fit = machine.fit(found);
        if fit.open && !last {
            return found;
        }
        text = if let Some((length, mark)) = fit.whole {
            let (marker, after) = found.split_at(length);
            machine.mark(mark, marker, sink);
            after
        } else {
            let (one, after) = found.split_at(letter.len_utf8());
            machine.plain(one, sink);
            after
        };
    }
    ""
}

fn give<'t>(text: &'t str, sink: &mut Sink<'_>, piece: impl Fn(&'t str) -> Piece<'t>) {
    if !text.is_empty() {
        sink(piece(text));
    }
}

/// A whole answer, split. A field without any letter is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The reasoning.
    pub reasoning: Option<String>,
    /// The answer.
    pub content: Option<String>,
}

/// Splits a whole answer that came in these parts.
pub fn split<'t>(
    grammar: &Grammar,
    start: Start<'_>,
    parts: impl IntoIterator<Item = &'t str>,
) -> Split {
    let (mut reasoning, mut content) = (String::new(), String::new());
    let mut sink = |piece: Piece<'_>| match piece {
        Piece::Reasoning(text) => reasoning.push_str(text),
        Piece::Content(text) => content.push_str(text),
        Piece::Markup(_) => {}
    };
    let mut splitter = Splitter::new(grammar, start);
    for part in parts {
        splitter.push(part, &mut sink);
    }
    splitter.finish(&mut sink);
    let some = |text: String| Some(text).filter(|text| !text.trim().is_empty());
    Split {
        reasoning: some(reasoning),
        content: some(content),
    }
}

#[cfg(test)]
mod tests;
