//! Models: what a client is shown of their reasoning, and how much of it there may be.

/// Most tokens that a request may think, as a policy may say it.
pub const THINKING_TOKENS_MAX: u32 = 10_000_000;

/// The sections `[[models]]` and `[[families]]`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Models {
    /// The first whose name fits the model counts.
    pub rules: Vec<ModelRule>,
    /// The families that the file brings along.
    pub families: Vec<FamilyRow>,
}

/// What holds for the models that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRule {
    /// A whole name as clients write it; `*` stands for any text.
    pub name: String,
    /// How the model marks its reasoning, by the name of a family. `None` is what its replica's chat template or its own name tells.
    pub family: Option<String>,
    /// What the client is shown.
    pub reasoning: Reasoning,
    /// Under which name.
    pub field: ReasoningField,
    /// Whether the model thinks where the request does not say. `None` is the family's default.
    pub thinking: Option<bool>,
    /// Most tokens that a request may think; also what holds where it does not say.
    pub thinking_tokens_max: Option<u32>,
    /// Who keeps a budget.
    pub budget: Budget,
}

/// Who keeps a budget of thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Budget {
    /// The replica's engine, by its own field.
    #[default]
    Native,
    /// The engine by its own field, and the gateway where the engine thinks on past it.
    Guarded,
    /// The gateway, by cutting the answer and having the replica continue it.
    Emulated,
}

/// What a client is shown of the reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reasoning {
    /// All of it, in a field of its own.
    #[default]
    Field,
    /// Nothing.
    Hidden,
    /// Its length.
    Summary,
}

/// The field that carries reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReasoningField {
    /// `reasoning_content`.
    #[default]
    ReasoningContent,
    /// `reasoning`.
    Reasoning,
    /// Both.
    Both,
}

impl Reasoning {
    pub(crate) const WORDS: [(&'static str, Self); 3] = [
        ("field", Self::Field),
        ("hidden", Self::Hidden),
        ("summary", Self::Summary),
    ];

    /// The word in a policy file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        word(&Self::WORDS, self)
    }
}

impl Budget {
    pub(crate) const WORDS: [(&'static str, Self); 3] = [
        ("native", Self::Native),
        ("guarded", Self::Guarded),
        ("emulated", Self::Emulated),
    ];

    /// The word in a policy file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        word(&Self::WORDS, self)
    }
}

impl ReasoningField {
    pub(crate) const WORDS: [(&'static str, Self); 3] = [
        ("reasoning_content", Self::ReasoningContent),
        ("reasoning", Self::Reasoning),
        ("both", Self::Both),
    ];

    /// The word in a policy file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        word(&Self::WORDS, self)
    }
}

fn word<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    let found = words.iter().find(|(_, known)| *known == value);
    found.map_or("", |(word, _)| word)
}

/// A family as the file says it. What its keys mean is the gateway's to check: they are those of its own table of families.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyRow {
    /// Its name.
    pub name: String,
    /// All that it says, as JSON.
    pub says: String,
}

impl Models {
    /// What holds for a model, by its name as the client wrote it.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<&ModelRule> {
        self.rules.iter().find(|rule| fits(&rule.name, model))
    }
}

/// Whether the pattern fits the whole name: the texts between its stars, in their order, the first and the last at the ends.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = rest.get(at + part.len()..).unwrap_or("");
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_pattern_fits_whole_names_only() {
        for (pattern, name, expect) in [
            ("m", "m", true),
            ("m", "mm", false),
            ("*", "", true),
            ("a*", "ab", true),
            ("a*", "ba", false),
            ("*a", "aba", true),
            ("a*a", "a", false),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("*b*b", "ab", false),
            ("é*", "é", true),
        ] {
            assert_eq!(fits(pattern, name), expect, "{pattern} {name}");
        }
    }
}
