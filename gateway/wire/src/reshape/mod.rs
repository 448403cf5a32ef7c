//! Reshapes an answer on its way to the client: reasoning that stands in the text goes into a field of its own, and a replica's own
//! split gets the field's name that the client reads. Everything else stays the replica's own bytes.

mod choice;
mod members;
mod patch;
mod usage;
mod watch;

use bytes::{Bytes, BytesMut};

use crate::chunk::{self, ChoicePlaces, ChunkScan, Places};
use crate::families::Grammar;
use crate::json::ScanError;
use crate::json::cursor::Cursor;
use choice::Choice;
use patch::Patch;
use usage::Shares;
pub use watch::Watch;

/// Most choices of one answer that are told apart, as many as `n` may be.
pub const CHOICES_MAX: usize = 128;

/// What the client is shown of the reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// All of it, in a field of its own.
    #[default]
    Field,
    /// Nothing but its count of tokens in `usage`.
    Hidden,
    /// How many characters it was, in the field's place.
    Summary,
}

/// The field that carries reasoning to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldName {
    /// `reasoning_content`.
    #[default]
    ReasoningContent,
    /// `reasoning`.
    Reasoning,
    /// The same text under both names.
    Both,
}

/// How an answer is reshaped.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How its model marks reasoning.
    pub grammar: Grammar,
    /// Whether thinking is on for this request; the family's default where nobody said.
    pub thinking: Option<bool>,
    /// Whether the replica is known to split by itself.
    pub engine_splits: bool,
    /// What the client is shown.
    pub shown: Shown,
    /// Under which name.
    pub field: FieldName,
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It goes out as it is.
    Same,
    /// It goes out as [`Reshaper::write`] writes it.
    Spliced,
    /// Nothing of it is for the client.
    Nothing,
}

/// One event, reshaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reshaped {
    /// What becomes of it.
    pub change: Change,
    /// Whether it carries something for the user: text of the answer or a tool call.
    pub content: bool,
}

/// The state of one answer.
#[derive(Debug)]
pub struct Reshaper {
    plan: Plan,
    choices: Vec<Choice>,
    patch: Patch,
    shares: Shares,
    /// The last event with choices: what a further one looks like.
    last: Option<(Bytes, std::ops::Range<usize>)>,
    unread: bool,
    /// Counts the thought, where somebody wants to cut it.
    watch: Option<Watch>,
}

impl Reshaper {
    /// At the beginning of an answer.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            choices: Vec::new(),
            patch: Patch::default(),
            shares: Shares::default(),
            last: None,
            unread: false,
            watch: None,
        }
    }

    /// From here on counts the tokens of the thought of an answer's one choice, and keeps its text.
    #[must_use]
    pub fn watching(mut self) -> Self {
        self.watch = Some(Watch::default());
        self
    }

    /// What was counted, where anything is.
    #[must_use]
    pub fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// The thought so far as it was written, for a replica that is to go on behind it. `None` once a part of the answer went out or
    /// where there is no thought, or more of it than is kept.
    #[must_use]
    pub fn thought(&self) -> Option<&str> {
        let [choice] = &self.choices[..] else {
            return None;
        };
        let kept = choice.kept.as_deref()?;
        let whole = kept.len() < watch::WATCHED_BYTES_MAX;
        (whole && !kept.is_empty() && !choice.answers() && !choice.tools).then_some(kept)
    }

    /// What comes next is another stream, in which the replica goes on behind the thought so far: under the same id, with no second role,
    /// and with usage as of one answer.
    pub fn resume(&mut self) {
        for choice in &mut self.choices {
            choice.resume(&self.plan);
        }
        if let Some(watch) = &mut self.watch {
            watch.resume();
        }
    }

    /// Whether the client must not see all that there is.
    #[must_use]
    pub fn hides(&self) -> bool {
        self.plan.shown != Shown::Field
    }

    /// Whether the replica has split reasoning off by itself.
    #[must_use]
    pub fn engine_split(&self) -> bool {
        self.shares.engine > 0
    }

    /// Whether reasoning was split off here.
    #[must_use]
    pub fn gateway_split(&self) -> bool {
        self.shares.own > 0
    }

    /// Whether some text could not be read (half a surrogate pair), or too many choices came; such text was not split.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        self.unread
    }

    /// The next event of a stream, by its data and what the scan found there. Where the answer is [`Change::Spliced`], its new data is
    /// to be fetched by [`Reshaper::write`] before the next event.
    pub fn event(&mut self, data: &Bytes, seen: &mut ChunkScan, places: &Places) -> Reshaped {
        let reshaped = self.take(data, seen, places, false);
        if let Some(choices) = &places.choices
            && !places.each.is_empty()
        {
            self.last = Some((data.clone(), choices.clone()));
        }
        reshaped
    }

    /// Appends the data of the last event as it goes out.
    pub fn write(&mut self, data: &[u8], out: &mut BytesMut) {
        self.patch.write(data, out);
    }

    /// The end of a stream in which choices are open: what is held back of them, as the data of one more event.
    pub fn flush(&mut self) -> Option<Bytes> {
        let (data, span) = self.last.take()?;
        let mut chunks: Vec<Vec<u8>> = Vec::new();
        for choice in &mut self.choices {
            choice.clear();
            choice.end(&self.plan);
            choice.tell(true);
            self.shares.own += choice.thought;
            self.shares.content += choice.content.text.len();
            let texts = (&*choice.reasoning.text, &*choice.content.text);
            if texts != ("", "") {
                let mut chunk = format!("{{\"index\":{},\"delta\":{{", choice.index).into_bytes();
                members::write(&mut chunk, self.plan.field, texts.0, Some(texts.1));
                chunk.extend_from_slice(b"},\"finish_reason\":null}");
                chunks.push(chunk);
            }
        }
        if chunks.is_empty() {
            return None;
        }
        let mut out = BytesMut::from(data.get(..span.start)?);
        out.extend_from_slice(b"[");
        out.extend_from_slice(&chunks.join(&b","[..]));
        out.extend_from_slice(b"]");
        out.extend_from_slice(data.get(span.end..)?);
        Some(out.freeze())
    }

    /// A whole answer, reshaped, with what the scan found in it.
    ///
    /// # Errors
    /// The body is no JSON object.
    pub fn answer(&mut self, body: &Bytes) -> Result<(Bytes, ChunkScan), ScanError> {
        let mut places = Places::default();
        let mut seen = chunk::scan_placed(body, &mut places)?;
        let reshaped = self.take(body, &mut seen, &places, true);
        if reshaped.change == Change::Same {
            return Ok((body.clone(), seen));
        }
        let mut out = BytesMut::new();
        self.patch.write(body, &mut out);
        Ok((out.freeze(), seen))
    }

    fn take(
        &mut self,
        data: &[u8],
        seen: &mut ChunkScan,
        places: &Places,
        whole: bool,
    ) -> Reshaped {
        self.patch.clear();
        if let Some(watch) = &mut self.watch {
            watch.begin(data, seen, places, &mut self.patch);
        }
        let (mut content, mut left) = (false, whole || seen.usage.is_some());
        for place in &places.each {
            let index = place.index.unwrap_or(0);
            let Some(at) = self.choice(index) else {
                self.unread = true;
                left = true;
                content |= place.content.is_some();
                self.withhold_unread(place);
                continue;
            };
            left |= self.one(at, data, place, whole);
            content |= !self
                .choices
                .get(at)
                .is_none_or(|choice| choice.content.text.is_empty());
        }
        left |= places.each.len() != 1;
        let merged = self.watch.as_ref().zip(places.usage.as_ref());
        if let Some((watch, place)) = merged.filter(|(watch, _)| watch.resumed())
            && let Some(usage) = &mut seen.usage
        {
            watch.merge(usage, place, &mut self.patch);
        } else if let Some(usage) = &mut seen.usage {
            self.shares.patch(usage, places, &mut self.patch);
        }
        let change = match self.patch.is_empty() {
            _ if !left => Change::Nothing,
            true => Change::Same,
            false => Change::Spliced,
        };
        Reshaped {
            change,
            content: content || seen.tool_calls,
        }
    }

    /// Where the choice's state is; made where it is new. `None` past the bound.
    fn choice(&mut self, index: u64) -> Option<usize> {
        let found = self.choices.iter().position(|choice| choice.index == index);
        found.or_else(|| {
            (self.choices.len() < CHOICES_MAX).then(|| {
                let mut choice = Choice::new(index, &self.plan);
                choice.kept = self.watch.as_ref().map(|_| String::new());
                self.choices.push(choice);
                self.choices.len() - 1
            })
        })
    }

    /// What cannot be split is shown as it is, or not at all.
    fn withhold_unread(&mut self, place: &ChoicePlaces) {
        if self.plan.shown != Shown::Field {
            let fields = [&place.content, &place.reasoning_content, &place.reasoning];
            for field in fields.into_iter().flatten() {
                self.patch.null(field.value.clone());
            }
            for span in place.traces.iter().chain(&place.spelled) {
                self.patch.null(span.clone());
            }
        }
    }

    /// One choice of an event or answer. Whether anything of it is left for the client.
    fn one(&mut self, at: usize, data: &[u8], place: &ChoicePlaces, whole: bool) -> bool {
        let Self {
            plan,
            choices,
            patch,
            shares,
            watch,
            ..
        } = self;
        let Some(choice) = choices.get_mut(at) else {
            return true;
        };
        choice.clear();
        let kept = choice.kept.as_ref().map_or(0, String::len);
        let engine = [&place.reasoning_content, &place.reasoning];
        let engine = engine.into_iter().flatten().find(|member| member.text);
        if let Some(member) = engine {
            choice.split_by_engine(plan);
            choice.mixed = true;
            let raw = data.get(member.value.clone()).unwrap_or_default();
            shares.engine += raw.len().saturating_sub(2);
            if choice.kept.is_some() {
                choice.keep(&text_of(raw).unwrap_or_default());
            }
            if plan.shown == Shown::Summary {
                choice.hide(text_of(raw).map_or(0, |text| text.chars().count()));
            }
        }
        let before = place.content.as_ref().filter(|member| member.string);
        let text = before.map(|member| {
            let raw = data.get(member.value.clone()).unwrap_or_default();
            (member, text_of(raw))
        });
        if let Some((_, None)) = &text {
            self.unread = true;
            self.withhold_unread(place);
            return true;
        }
        let text = text.and_then(|(_, text)| text);
        choice.push(text.as_deref().unwrap_or_default(), plan);
        if let Some(calls) = &place.tool_calls {
            choice.tools = true;
            shares.content += calls.len();
        }
        let ends = whole || (place.finish_reason.is_some() && place.message.is_some());
        if ends {
            choice.end(plan);
        }
        if let Some(watch) = watch {
            let thought = choice.kept.as_ref().map_or(0, String::len) - kept;
            let answers = !choice.content.text.is_empty() || choice.tools;
            let written = engine.is_some() || text.as_deref().is_some_and(|text| !text.is_empty());
            watch.count(thought, answers || ends, written && kept > 0);
        }
        choice.tell(ends);
        shares.own += choice.thought;
        shares.content += choice.content.text.len();
        members::patch(plan, choice, place, data, text.as_deref(), whole, patch)
    }
}

/// What a JSON string means; `None` where it means no text.
fn text_of(raw: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    let text = Cursor::new(raw).string().ok()?;
    if text.escaped {
        return text.to_text().ok().map(std::borrow::Cow::Owned);
    }
    std::str::from_utf8(text.raw)
        .ok()
        .map(std::borrow::Cow::Borrowed)
}

#[cfg(test)]
mod tests;
