//! What a turn asks for: words of many languages that mean the same kind of task are one feature.

use std::sync::LazyLock;

use super::text::{Kind, Normal};

/// The words, a group per concept.
pub(super) const WORDS: &str = include_str!("concepts.txt");
/// Slots of the index by a pattern's first characters; a power of two.
const SLOTS: usize = 4_096;
/// A concept that is met more often than this says no more.
const MET_MAX: u8 = 4;

static CONCEPTS: LazyLock<Concepts> = LazyLock::new(|| Concepts::read(WORDS));

/// All concepts with an index of their words.
pub(super) struct Concepts {
    names: Vec<&'static str>,
    /// Patterns by their first characters; the longest lists are a few dozen.
    slots: Vec<Vec<Pattern>>,
}

struct Pattern {
    concept: usize,
    text: String,
    /// How many characters it stands under.
    chars: usize,
    /// Whether a word may go on after it.
    open: bool,
}

/// How often a concept is met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Met {
    /// In the first or the last words of the turn, where people say what they want.
    pub(super) edge: u8,
    /// Anywhere.
    pub(super) all: u8,
}

/// The concepts of this build.
pub(super) fn concepts() -> &'static Concepts {
    &CONCEPTS
}

/// Patterns stand under their first characters, up to this many.
const SLOT_CHARS: usize = 3;

fn next_slot(slot: usize, c: char) -> usize {
    (slot.wrapping_mul(0x9e37_79b1).wrapping_add(c as usize + 1)) & 0xffff_ffff
}

fn place(slot: usize) -> usize {
    (slot ^ (slot >> 15)) % SLOTS
}

impl Concepts {
    fn read(words: &'static str) -> Self {
        let mut names = Vec::new();
        let mut slots: Vec<Vec<Pattern>> = (0..SLOTS).map(|_| Vec::new()).collect();
        for line in words.lines().filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[') {
                names.push(name.trim_end_matches(']'));
                continue;
            }
            for word in line.split(',').map(str::trim) {
                let (word, open) = word
                    .strip_suffix('*')
                    .map_or((word, false), |stem| (stem, true));
                let normal = Normal::of(word);
                let Some(first) = normal.words.first() else {
                    continue;
                };
                let open = open
                    || normal
                        .words
                        .last()
                        .is_some_and(|last| last.kind == Kind::Dense);
                let text = normal.text[first.span.start..].to_owned();
                let concept = names.len().saturating_sub(1);
                let slot = text.chars().take(SLOT_CHARS).fold(0, next_slot);
                let list = &mut slots[place(slot)];
                let known = |other: &Pattern| other.concept == concept && other.text == text;
                if !list.iter().any(known) {
                    let chars = text.chars().take(SLOT_CHARS).count();
                    list.push(Pattern {
                        concept,
                        text,
                        chars,
                        open,
                    });
                }
            }
        }
        Self { names, slots }
    }

    /// Their names, in the order of [`Concepts::met`].
    pub(super) fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// How often each is met. `edge` says whether a byte of the text lies at the turn's beginning or end.
    pub(super) fn met(&self, normal: &Normal, edge: impl Fn(usize) -> bool) -> Vec<Met> {
        let mut met = vec![Met::default(); self.names.len()];
        for word in &normal.words {
            match word.kind {
                Kind::Letters => self.at(normal, word.span.start, &edge, &mut met),
                Kind::Dense => {
                    let text = &normal.text[word.span.clone()];
                    for (offset, _) in text.char_indices() {
                        self.at(normal, word.span.start + offset, &edge, &mut met);
                    }
                }
                Kind::Digits => {}
            }
        }
        met
    }

    fn at(&self, normal: &Normal, at: usize, edge: impl Fn(usize) -> bool, met: &mut [Met]) {
        let rest = &normal.text[at..];
        let mut slot = 0;
        for (index, c) in rest.chars().take(SLOT_CHARS).enumerate() {
            slot = next_slot(slot, c);
            for pattern in &self.slots[place(slot)] {
                // Shorter patterns and longer ones stand elsewhere, or here by chance.
                if pattern.chars != index + 1 {
                    continue;
                }
                let Some(after) = rest.strip_prefix(pattern.text.as_str()) else {
                    continue;
                };
                if pattern.open || !after.chars().next().is_some_and(char::is_alphanumeric) {
                    let met = &mut met[pattern.concept];
                    met.all = (met.all + 1).min(MET_MAX);
                    if edge(at) {
                        met.edge = (met.edge + 1).min(MET_MAX);
                    }
                }
            }
        }
    }
}
