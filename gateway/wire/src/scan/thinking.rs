//! What a request says about thinking, in the words of every engine and API that has some.

use std::ops::Range;

use crate::json::ScanError;
use crate::json::cursor::Cursor;

/// The top-level fields that this reads.
pub(super) const FIELDS: [&str; 11] = [
    "chat_template_kwargs",
    "custom_params",
    "enable_thinking",
    "thinking",
    "reasoning",
    "reasoning_effort",
    "include_reasoning",
    "separate_reasoning",
    "thinking_token_budget",
    "thinking_budget_tokens",
    "reasoning_budget_tokens",
];

/// What a request says about thinking. All spans are byte ranges in the scanned body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThinkingScan {
    pub(crate) kwargs: Option<Kwargs>,
    /// SGLang's object, in which its budget stands.
    pub(crate) custom_params: Option<Slot>,
    /// On or off by a field of its own: `enable_thinking`, `thinking.type`, `reasoning.enabled`.
    pub(crate) enabled: Option<bool>,
    /// `reasoning_effort`, else `reasoning.effort`.
    pub effort: Option<String>,
    /// The value of `reasoning_effort`, whatever it is.
    pub(crate) effort_at: Option<Range<usize>>,
    /// The client wants no reasoning: `include_reasoning` is false or `reasoning.exclude` true.
    pub excluded: bool,
    /// The client wants the text as the model wrote it: `separate_reasoning` is false.
    pub inline: bool,
    /// Fields that limit the tokens of thinking, in the order of the body; null ones left out.
    pub budgets: Vec<BudgetScan>,
}

/// A field whose value should be an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Its value.
    pub(crate) span: Range<usize>,
    pub(crate) is_object: bool,
    pub(crate) is_null: bool,
    pub(crate) has_fields: bool,
}

/// `chat_template_kwargs`, with its members that may be switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kwargs {
    pub(crate) slot: Slot,
    pub(crate) switches: Vec<Said>,
}

/// A member of `chat_template_kwargs` that says true, false or a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) name: String,
    pub(crate) says: Switch,
    /// Its value.
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    Flag(bool),
    Word(String),
}

/// A field that limits the tokens of thinking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetScan {
    /// Its name, with that of the object that it stands in.
    pub name: &'static str,
    /// Its member at the top level, from the key's quote to the value's end; none where it stands in an object of another meaning.
    pub member: Option<Range<usize>>,
    /// What it says, as it is written.
    pub written: String,
}

/// Most members of `chat_template_kwargs` that are kept.
const SWITCHES_MAX: usize = 16;
/// Most characters of a budget that are kept, for the message that refuses it.
const WRITTEN_CHARS_MAX: usize = 24;

impl ThinkingScan {
    /// Reads the value of one of [`FIELDS`], whose key begins at `start`.
    pub(super) fn field(
        &mut self,
        c: &mut Cursor<'_>,
        field: &'static str,
        start: usize,
    ) -> Result<(), ScanError> {
        match field {
            "chat_template_kwargs" => self.kwargs = Some(kwargs(c)?),
            "custom_params" => self.custom_params = Some(slot(c, |c, _| c.skip_value())?),
            "enable_thinking" => self.enabled = flag(c)?.or(self.enabled),
            "thinking" => self.thinking(c)?,
            "reasoning" => self.reasoning(c)?,
            "reasoning_effort" => {
                c.peek();
                let start = c.at();
                self.effort = word(c)?.or(self.effort.take());
                self.effort_at = Some(start..c.at());
            }
            "include_reasoning" => self.excluded |= flag(c)? == Some(false),
            "separate_reasoning" => self.inline = flag(c)? == Some(false),
            name => self.budget(c, name, Some(start))?,
        }
        Ok(())
    }

    /// Anthropic's and GLM's object.
    fn thinking(&mut self, c: &mut Cursor<'_>) -> Result<(), ScanError> {
        members(c, |c, name| match name {
            b"type" => {
                match word(c)?.as_deref() {
                    Some("disabled") => self.enabled = Some(false),
                    Some("enabled" | "adaptive") => self.enabled = Some(true),
                    _ => {}
                }
                Ok(())
            }
            b"budget_tokens" => self.budget(c, "thinking.budget_tokens", None),
            _ => c.skip_value(),
        })
    }

    /// OpenRouter's object.
    fn reasoning(&mut self, c: &mut Cursor<'_>) -> Result<(), ScanError> {
        members(c, |c, name| {
            match name {
                b"effort" => self.effort = self.effort.take().or(word(c)?),
                b"enabled" => self.enabled = flag(c)?.or(self.enabled),
                b"exclude" => self.excluded |= flag(c)? == Some(true),
                b"max_tokens" => self.budget(c, "reasoning.max_tokens", None)?,
                _ => c.skip_value()?,
            }
            Ok(())
        })
    }

    fn budget(
        &mut self,
        c: &mut Cursor<'_>,
        name: &'static str,
        start: Option<usize>,
    ) -> Result<(), ScanError> {
        let null = c.peek() == Some(b'n');
        let value = c.value()?;
        if !null {
            let written = c.slice(value.clone()).unwrap_or_default();
            self.budgets.push(BudgetScan {
                name,
                member: start.map(|start| start..value.end),
                written: written.chars().take(WRITTEN_CHARS_MAX).collect(),
            });
        }
        Ok(())
    }

    /// The effort that counts: a template's own argument more than a field.
    #[must_use]
    pub fn effort_word(&self) -> Option<&str> {
        let own = self.effort_argument().and_then(|said| match &said.says {
            Switch::Word(word) => Some(&**word),
            Switch::Flag(_) => None,
        });
        own.or(self.effort.as_deref())
    }

    pub(crate) fn effort_argument(&self) -> Option<&Said> {
        let mut said = self.kwargs.iter().flat_map(|kwargs| &kwargs.switches);
        said.find(|said| said.name == "reasoning_effort")
    }

    /// Whether the client wants thinking on or off, and whether it says so by one of these switches of the template. An explicit
    /// switch counts more than a field, and a field more than an effort.
    #[must_use]
    pub fn wish(&self, switches: &[String], on: &str, off: &str) -> Option<(bool, bool)> {
        let said = self.kwargs.iter().flat_map(|kwargs| &kwargs.switches);
        let by_switch = said
            .filter(|said| switches.contains(&said.name))
            .find_map(|said| match &said.says {
                Switch::Flag(flag) => Some(*flag),
                Switch::Word(word) if word == on => Some(true),
                Switch::Word(word) if word == off => Some(false),
                Switch::Word(_) => None,
            });
        let no_effort = matches!(self.effort.as_deref(), Some("none" | "minimal"));
        let effort = self.effort.is_some().then_some(!no_effort);
        let by_field = self.enabled.or(effort);
        by_switch
            .map(|flag| (flag, true))
            .or(by_field.map(|flag| (flag, false)))
    }
}

fn kwargs(c: &mut Cursor<'_>) -> Result<Kwargs, ScanError> {
    let mut switches = Vec::new();
    let slot = slot(c, |c, name| {
        let first = c.peek();
        let start = c.at();
        let says = match first {
            Some(b't' | b'f') => flag(c)?.map(Switch::Flag),
            Some(b'"') => word(c)?.map(Switch::Word),
            _ => c.skip_value().map(|()| None)?,
        };
        if switches.len() < SWITCHES_MAX {
            let (name, span) = (String::from_utf8_lossy(name).into_owned(), start..c.at());
            switches.extend(says.map(|says| Said { name, says, span }));
        }
        Ok(())
    })?;
    Ok(Kwargs { slot, switches })
}

fn slot(
    c: &mut Cursor<'_>,
    mut member: impl FnMut(&mut Cursor<'_>, &[u8]) -> Result<(), ScanError>,
) -> Result<Slot, ScanError> {
    let first = c.peek();
    let (start, mut has_fields) = (c.at(), false);
    members(c, |c, name| {
        has_fields = true;
        member(c, name)
    })?;
    Ok(Slot {
        span: start..c.at(),
        is_object: first == Some(b'{'),
        is_null: first == Some(b'n'),
        has_fields,
    })
}

/// Walks an object, or passes a value that is none.
fn members(
    c: &mut Cursor<'_>,
    mut member: impl FnMut(&mut Cursor<'_>, &[u8]) -> Result<(), ScanError>,
) -> Result<(), ScanError> {
    if c.peek() != Some(b'{') {
        return c.skip_value();
    }
    c.object(|c, key| member(c, &key.name()))
}

/// `true` or `false`; anything else is the replica's to judge.
fn flag(c: &mut Cursor<'_>) -> Result<Option<bool>, ScanError> {
    let span = c.value()?;
    Ok(c.slice(span).and_then(|word| word.parse().ok()))
}

fn word(c: &mut Cursor<'_>) -> Result<Option<String>, ScanError> {
    if c.peek() != Some(b'"') {
        return c.skip_value().map(|()| None);
    }
    // A word that means no text is none that anyone looks for.
    Ok(c.string()?.to_text().ok())
}
