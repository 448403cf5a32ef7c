//! The rows of a families file, checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use super::plain;
use crate::scan::{Says, ThinkingScan};

/// The longest marker, in bytes: a splitter holds back at most this much text.
pub const MARKER_BYTES_MAX: usize = 64;

/// What is wrong with a families file or a name, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyError(String);

impl FamilyError {
    pub(super) const fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for FamilyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FamilyError {}

/// One family of models.
#[derive(Clone, Debug)]
pub struct Family {
    /// Its first name.
    pub name: String,
    pub(super) aliases: Vec<String>,
    pub(super) models: Vec<String>,
    /// How its reasoning is marked.
    pub grammar: Grammar,
    /// How thinking is switched.
    pub switch: Switch,
    /// What of earlier reasoning goes along with a request.
    pub history: History,
    /// Whether its template writes the reasoning effort at the head of the prompt: another effort is another prompt from there on.
    pub effort_in_head: bool,
    /// Efforts that its template does not know, with the nearest that it does.
    pub(super) efforts: BTreeMap<String, String>,
    pub(super) template: Vec<String>,
}

/// What of earlier reasoning goes along with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// All that the client sends: the template chooses, or the model wants it.
    #[default]
    Keep,
    /// What was thought since the user's last words, as between the calls of a tool.
    ToolLoop,
    /// Nothing.
    Strip,
}

/// The chat template's switch for thinking: a member of `chat_template_kwargs`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// The names that engines take, the template's own first; without any, thinking cannot be switched.
    #[serde(default)]
    pub names: Vec<String>,
    /// What switches it on, where it is a word; otherwise `true` does.
    pub on: Option<String>,
    /// What switches it off, where it is a word; otherwise `false` does.
    pub off: Option<String>,
}

impl Switch {
    const NONE: Self = Self {
        names: Vec::new(),
        on: None,
        off: None,
    };

    /// Whether a request wants thinking on or off, where it says, and whether it says so by this switch.
    #[must_use]
    pub fn wish(&self, asked: &ThinkingScan) -> Option<(bool, bool)> {
        let word = |word: &Option<String>| word.clone().unwrap_or_default();
        asked.wish(&self.names, &word(&self.on), &word(&self.off))
    }

    /// The member that switches thinking, as JSON; `None` where there is no switch.
    #[must_use]
    pub fn member(&self, thinking: bool) -> Option<String> {
        let name = self.names.first()?;
        Some(format!("\"{name}\":{}", self.value(thinking)?))
    }

    /// What that member says, as JSON.
    pub(crate) fn value(&self, thinking: bool) -> Option<String> {
        self.says(thinking).map(|says| match says {
            Says::Word(word) => format!("\"{word}\""),
            Says::Flag(flag) => flag.to_string(),
        })
    }

    /// What that member says; `None` where there is no switch.
    pub(crate) fn says(&self, thinking: bool) -> Option<Says> {
        self.names.first()?;
        let word = if thinking { &self.on } else { &self.off };
        Some(word.clone().map_or(Says::Flag(thinking), Says::Word))
    }
}

impl Family {
    /// Whether its template reads an effort.
    #[must_use]
    pub fn reads_effort(&self) -> bool {
        self.effort_in_head || !self.efforts.is_empty()
    }

    /// The effort that its template knows for this one.
    #[must_use]
    pub fn effort<'e>(&'e self, asked: &'e str) -> &'e str {
        self.efforts.get(asked).map_or(asked, |known| known)
    }

    /// The name and the aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.name).chain(self.aliases.iter().map(|alias| &**alias))
    }
}

/// How reasoning is marked in the text.
#[derive(Clone, Debug)]
pub enum Grammar {
    /// It is not: all text is the answer.
    None,
    /// Between an opener and a closer.
    Tags(Arc<Tags>),
    /// By the channel of each message, as gpt-oss writes them.
    Channels,
}

/// The markers of a family that writes reasoning between an opener and a closer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tags {
    /// What opens reasoning.
    pub open: Vec<String>,
    /// What closes it.
    pub close: Vec<String>,
    /// Who writes the opener where thinking is on.
    pub opener: Opener,
    /// Whether the family thinks where nobody says.
    pub thinking: bool,
    /// What begins a tool call, and so ends reasoning without a closer.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Whether a second opener in one answer opens reasoning again; otherwise it is text.
    #[serde(default)]
    pub reopen: bool,
    /// What the answer may be wrapped in: pairs of what comes before it and after it.
    #[serde(default)]
    pub answer: Vec<[String; 2]>,
}

impl Tags {
    pub(crate) fn markers(&self) -> impl Iterator<Item = &str> {
        let plain = self.open.iter().chain(&self.close).chain(&self.tools);
        plain
            .chain(self.answer.iter().flatten())
            .map(|marker| &**marker)
    }
}

/// Who writes the opener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opener {
    /// The chat template, at the end of the prompt: the output begins inside reasoning.
    Template,
    /// The model, in its output.
    Model,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    family: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    models: Vec<String>,
    style: Option<Style>,
    tags: Option<Tags>,
    switch: Option<SwitchRow>,
    #[serde(default)]
    history: History,
    #[serde(default)]
    template: Vec<String>,
    #[serde(default)]
    effort_in_head: bool,
    #[serde(default)]
    efforts: BTreeMap<String, String>,
}

/// One name, or a whole switch.
#[derive(Deserialize)]
#[serde(untagged)]
enum SwitchRow {
    Name(String),
    Switch(Switch),
}

/// What of a policy file concerns families.
#[derive(Deserialize)]
struct PolicyFile {
    #[serde(default)]
    families: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Style {
    None,
    Channels,
}

pub(super) fn read(text: &str) -> Result<Vec<Family>, FamilyError> {
    let file: File = toml::from_str(text).map_err(|error| FamilyError::new(error.to_string()))?;
    checked(file.family)
}

/// The `[[families]]` of a policy file.
pub(super) fn read_policy(text: &str) -> Result<Vec<Family>, FamilyError> {
    let file: PolicyFile =
        toml::from_str(text).map_err(|error| FamilyError::new(error.to_string()))?;
    checked(file.families)
}

fn checked(all: Vec<Row>) -> Result<Vec<Family>, FamilyError> {
    let mut problems = Vec::new();
    let mut taken = BTreeSet::new();
    let mut rows = Vec::new();
    for row in all {
        for name in std::iter::once(&row.name).chain(&row.aliases) {
            if !taken.insert(plain(name)) {
                problems.push(format!("`{}`: the name `{name}` is taken", row.name));
            }
        }
        rows.extend(family(row, &mut problems));
    }
    if problems.is_empty() {
        Ok(rows)
    } else {
        Err(FamilyError::new(problems.join("\n")))
    }
}

fn family(row: Row, problems: &mut Vec<String>) -> Option<Family> {
    let name = row.name;
    let switch = match row.switch {
        None => Switch::NONE,
        Some(SwitchRow::Name(name)) => Switch {
            names: vec![name],
            ..Switch::NONE
        },
        Some(SwitchRow::Switch(switch)) => switch,
    };
    check_switch(&name, &switch, problems);
    let words = row.efforts.values();
    for word in
        words.filter(|word| word.is_empty() || !word.chars().all(|c| c.is_ascii_lowercase()))
    {
        problems.push(format!(
            "`{name}`: `efforts`: {word:?}: expected small letters"
        ));
    }
    let grammar = match (row.style, row.tags) {
        (Some(Style::None), None) => Grammar::None,
        (Some(Style::Channels), None) => Grammar::Channels,
        (None, Some(tags)) => {
            check_tags(&name, &tags, problems);
            Grammar::Tags(Arc::new(tags))
        }
        _ => {
            problems.push(format!(
                "`{name}`: give either `tags` or `style` (`none`, `channels`)"
            ));
            return None;
        }
    };
    Some(Family {
        name,
        aliases: row.aliases,
        models: row.models,
        grammar,
        switch,
        history: row.history,
        template: row.template,
        effort_in_head: row.effort_in_head,
        efforts: row.efforts,
    })
}

fn check_switch(family: &str, switch: &Switch, problems: &mut Vec<String>) {
    let texts = switch.names.iter().chain(&switch.on).chain(&switch.off);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    for text in texts {
        if text.is_empty() || text.len() > MARKER_BYTES_MAX || !text.chars().all(plain) {
            problems.push(format!(
                "`{family}`: `switch`: {text:?}: needs 1 to {MARKER_BYTES_MAX} letters, digits, `-`, `_` or `.`"
            ));
        }
    }
}

fn check_tags(name: &str, tags: &Tags, problems: &mut Vec<String>) {
    if tags.open.is_empty() || tags.close.is_empty() {
        problems.push(format!("`{name}`: needs an `open` and a `close`"));
    }
    for marker in tags.markers() {
        if marker.is_empty() || marker.len() > MARKER_BYTES_MAX || marker.starts_with('\n') {
            problems.push(format!(
                "`{name}`: marker {marker:?}: needs 1 to {MARKER_BYTES_MAX} bytes and no newline at its beginning"
            ));
        }
    }
}
