//! What a lane says about thinking.

use std::fmt;

/// Most tokens that a lane's keys may say.
pub const LANE_TOKENS_MAX: u32 = 10_000_000;
/// The budget of a lane that thinks and names none, in tokens.
pub const BUDGET: u32 = 2_048;

/// What a lane does with a client's wish that is not its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wishes {
    /// The client has its way.
    #[default]
    Honour,
    /// The client has its way where it asks for less thinking.
    Cap,
    /// The client is told no.
    Refuse,
}

impl Wishes {
    /// The words of a policy file.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("honour", Self::Honour),
        ("cap", Self::Cap),
        ("refuse", Self::Refuse),
    ];

    /// The word in a policy file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        word(&Self::WORDS, self)
    }
}

/// How hard a model shall think, least first, in the words of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Not at all.
    None,
    /// As little as it can.
    Minimal,
    /// Little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
    /// More than that.
    Xhigh,
    /// As much as it can.
    Max,
}

impl Effort {
    /// The words of clients.
    pub const WORDS: [(&'static str, Self); 7] = [
        ("none", Self::None),
        ("minimal", Self::Minimal),
        ("low", Self::Low),
        ("medium", Self::Medium),
        ("high", Self::High),
        ("xhigh", Self::Xhigh),
        ("max", Self::Max),
    ];

    /// The effort of this word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        let found = Self::WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, effort)| *effort)
    }

    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        word(&Self::WORDS, self)
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a lane thinks, in the words of a policy file.
pub(crate) const THINKING: [(&str, bool); 2] = [("on", true), ("off", false)];

fn word<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    let found = words.iter().find(|(_, known)| *known == value);
    found.map_or("", |(word, _)| word)
}
