//! Messages that name their channel, as gpt-oss writes them: `<|channel|>analysis<|message|>…<|end|>`.

use super::{Fit, Machine, Piece, Sink, Start, give};

/// The longest head of a message, in bytes; a longer one is no head but text.
const HEAD_BYTES_MAX: usize = 256;

const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
const CONSTRAIN: &str = "<|constrain|>";
const ENDS: [&str; 3] = ["<|end|>", "<|return|>", "<|call|>"];
const ROLE: &str = "<|start|>assistant";
const RECIPIENT: &str = " to=";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the head of a message.
    Head,
    /// After a message.
    Between,
    Reasoning,
    Content,
    /// In a message to a tool, which goes out as it was written: whoever reads tool calls needs the head too.
    Tool,
}

#[derive(Debug)]
pub(super) struct Channels {
    state: State,
    head: String,
    /// How many bytes of the head were in the prompt.
    prompted: usize,
}

impl Channels {
    pub(super) fn new(start: Start<'_>) -> Self {
        let tail = start.prompt_tail.unwrap_or("");
        let head = tail.rfind(START).and_then(|at| tail.get(at..));
        let (head, rest) = match head.map(|head| (head, head.find(MESSAGE))) {
            Some((head, Some(at))) => (head.get(..at).unwrap_or(""), head.get(at..)),
            Some((head, None)) => (head, None),
            None => (ROLE, None),
        };
        let mut channels = Self {
            state: State::Head,
            head: head.to_owned(),
            prompted: head.len(),
        };
        if let Some(body) = rest {
            channels.state = channels.state_after_head();
            if ENDS.iter().any(|end| body.ends_with(end)) {
                channels.state = State::Between;
            }
            channels.clear();
        }
        channels
    }

    fn clear(&mut self) {
        self.head.clear();
        self.prompted = 0;
    }

    fn state_after_head(&self) -> State {
        if self.head.contains(RECIPIENT) {
            return State::Tool;
        }
        let channel = self.head.split(CHANNEL).nth(1).unwrap_or("");
        if channel.trim_start().starts_with("analysis") {
            State::Reasoning
        } else {
            State::Content
        }
    }

    /// Whether what was read can be the head of a message. After the role comes a channel or a recipient, never text.
    fn can_be_head(&self) -> bool {
        if self.head.len() > HEAD_BYTES_MAX {
            return false;
        }
        if self.head.contains(CHANNEL) || ROLE.starts_with(&*self.head) {
            return true;
        }
        let rest = self.head.strip_prefix(ROLE);
        rest.is_some_and(|rest| rest.starts_with(RECIPIENT) || RECIPIENT.starts_with(rest))
    }

    /// Ends a head: its role goes to nobody, the rest of it to the answer's reader or to nobody.
    fn give_head(&mut self, read: bool, sink: &mut Sink<'_>) {
        let own = self.head.get(self.prompted..).unwrap_or("");
        let role = if own.starts_with(ROLE) { ROLE.len() } else { 0 };
        let (role, rest) = own.split_at(role);
        give(role, sink, Piece::Markup);
        if read {
            give(rest, sink, Piece::Content);
        } else {
            give(rest, sink, Piece::Markup);
        }
        self.clear();
    }

    fn begin(&mut self, text: &str) {
        self.clear();
        self.head.push_str(text);
        self.state = State::Head;
    }

    fn grow(&mut self, text: &str, sink: &mut Sink<'_>) {
        self.head.push_str(text);
        if !self.can_be_head() {
            self.give_head(true, sink);
            self.state = State::Content;
        }
    }

    fn give_body(&self, text: &str, sink: &mut Sink<'_>) {
        match self.state {
            State::Reasoning => sink(Piece::Reasoning(text)),
            _ => sink(Piece::Content(text)),
        }
    }
}

impl Machine for Channels {
    type Mark = ();

    fn begins(&self, byte: u8) -> bool {
        byte == b'<'
    }

    fn fit(&self, text: &str) -> Fit<()> {
        let mut fit = Fit::new();
        for marker in [START, CHANNEL].iter().chain(&ENDS) {
            fit.add(text, marker, ());
        }
        if matches!(self.state, State::Head | State::Between) {
            fit.add(text, MESSAGE, ());
        }
        if self.state == State::Head {
            fit.add(text, CONSTRAIN, ());
        }
        fit
    }

    fn mark(&mut self, (): (), text: &str, sink: &mut Sink<'_>) {
        let ends = ENDS.contains(&text);
        match self.state {
            State::Head if text == MESSAGE => {
                self.state = self.state_after_head();
                if self.state == State::Tool {
                    self.give_head(true, sink);
                    sink(Piece::Content(text));
                } else {
                    self.give_head(false, sink);
                    sink(Piece::Markup(text));
                }
            }
            State::Head if ends || text == START => {
                self.give_head(false, sink);
                if ends {
                    self.state = State::Between;
                    sink(Piece::Markup(text));
                } else {
                    self.begin(text);
                }
            }
            State::Head if text == CONSTRAIN || text == CHANNEL => self.grow(text, sink),
            _ if ends => {
                if self.state == State::Tool {
                    sink(Piece::Content(text));
                } else {
                    sink(Piece::Markup(text));
                }
                self.state = State::Between;
            }
            _ if text == MESSAGE => {
                sink(Piece::Markup(text));
                self.state = State::Content;
            }
            _ => self.begin(text),
        }
    }

    fn plain(&mut self, text: &str, sink: &mut Sink<'_>) {
        let mut rest = text;
        while self.state == State::Head {
            let Some(letter) = rest.chars().next() else {
                return;
            };
            let (one, after) = rest.split_at(letter.len_utf8());
            self.grow(one, sink);
            rest = after;
        }
        if !rest.is_empty() {
            self.give_body(rest, sink);
        }
    }

    fn end(&mut self, sink: &mut Sink<'_>) {
        if self.state != State::Head {
            return;
        }
        let own = self.head.get(self.prompted..).unwrap_or("");
        if own.starts_with('<') {
            self.give_head(false, sink);
        } else {
            self.give_head(true, sink);
        }
    }
}
