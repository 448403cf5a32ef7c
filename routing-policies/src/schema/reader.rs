//! Walks a parsed file section by section and gathers every problem with its place.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::spec::{Key, Kind, NAMES_MAX, Spec, THOUSAND};
use crate::nearest::nearest;
use crate::problem::Problem;

/// Most characters of a wrong value that a problem repeats.
const SHOWN_CHARS_MAX: usize = 60;

/// A table of the file with its path, empty for the file itself.
pub(super) struct Section<'t> {
    path: String,
    keys: &'static [Key],
    pub(super) table: &'t DeTable<'t>,
    /// The byte at which it begins.
    pub(super) at: usize,
}

impl<'t> Section<'t> {
    pub(super) fn root(table: &'t DeTable<'t>) -> Self {
        Self {
            path: String::new(),
            keys: &[],
            table,
            at: 0,
        }
    }

    /// One of several tables under one name.
    pub(super) fn numbered(path: String, table: &'t DeTable<'t>, at: usize) -> Self {
        Self {
            path,
            keys: &[],
            table,
            at,
        }
    }

    /// Whether the key is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The value at `key` where it is there, with what it may say.
    fn get(&self, key: &str) -> Option<(&'t Spanned<DeValue<'t>>, &'static Kind)> {
        let known = self.keys.iter().find(|known| known.name == key)?;
        Some((self.table.get(key)?, &known.kind))
    }

    /// The byte at which the value of `key` begins, or the section where it has none.
    pub(super) fn place(&self, key: &str) -> usize {
        self.table
            .get(key)
            .map_or(self.at, |value| value.span().start)
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

/// Invariant: every getter that returns `None` for a key that is there has added a problem.
pub(super) struct Reader<'f> {
    file: &'f str,
    pub(super) text: &'f str,
    /// With the offset of each, by which they are put into the order of the text.
    problems: Vec<(usize, Problem)>,
    /// Lines that are broken TOML: what was recovered from them is not worth a second problem.
    broken_lines: Vec<u32>,
}

impl<'f> Reader<'f> {
    pub(super) fn new(file: &'f str, text: &'f str) -> Self {
        Self {
            file,
            text,
            problems: Vec::new(),
            broken_lines: Vec::new(),
        }
    }

    /// All problems, in the order of the text.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|(at, _)| *at);
        self.problems
            .into_iter()
            .map(|(_, problem)| problem)
            .collect()
    }

    /// Adds a problem of the text itself, in place of all others on its line. Call it last.
    pub(super) fn syntax(&mut self, at: usize, message: &str) {
        let (line, _) = self.position(at);
        if !self.broken_lines.contains(&line) {
            self.problems.retain(|(_, problem)| problem.line != line);
            self.broken_lines.push(line);
        }
        self.add(at, format!("not TOML: {message}"));
    }

    /// Adds a problem for each key that is not among `known`.
    pub(super) fn keys(&mut self, section: &Section<'_>, known: &[&str]) {
        for key in section.table.keys() {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                continue;
            }
            let path = section.path_of(name);
            let hint = match nearest(name, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("expected one of `{}`", known.join("`, `")),
            };
            self.add(key.span().start, format!("unknown key `{path}`; {hint}"));
        }
    }

    /// Checks that the file says which version of the format it is written in.
    pub(super) fn version(&mut self, root: &Section<'_>, version: u32) {
        let Some(value) = root.table.get("version") else {
            return self.add(
                0,
                format!("`version` is missing, expected `version = {version}`"),
            );
        };
        let DeValue::Integer(number) = value.get_ref() else {
            return self.wrong("version", value.span(), &format!("`{version}`"));
        };
        if number.radix() != 10 || number.as_str().parse() != Ok(version) {
            self.wrong("version", value.span(), &format!("`{version}`"));
        }
    }

    /// The table that `spec` describes, its keys checked for unknown ones; `None` where it is missing or no table.
    pub(super) fn section<'t>(
        &mut self,
        within: &Section<'t>,
        spec: &'static Spec,
    ) -> Option<Section<'t>> {
        let (key, keys) = (spec.name, spec.keys);
        let value = within.table.get(key)?;
        match value.get_ref() {
            DeValue::Table(table) => {
                let section = Section {
                    path: key.to_owned(),
                    keys,
                    table,
                    at: value.span().start,
                };
                let known: Vec<&str> = keys.iter().map(|known| known.name).collect();
                self.keys(&section, &known);
                Some(section)
            }
            _ => {
                self.wrong(key, value.span(), &format!("a section `[{key}]`"));
                None
            }
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, section: &Section<'_>, key: &str) -> Option<bool> {
        let (value, _) = section.get(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong(&section.path_of(key), value.span(), "`true` or `false`");
        }
        flag
    }

    /// A whole number within its limits.
    pub(super) fn count(&mut self, section: &Section<'_>, key: &str) -> Option<u32> {
        let (value, &Kind::Count { least, most, unit }) = section.get(key)? else {
            return None;
        };
        let number = match value.get_ref() {
            DeValue::Integer(digits) => u32::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let expected = format!("a whole number of {unit} from {least} to {most}");
            self.wrong(&section.path_of(key), value.span(), &expected);
        }
        number
    }

    /// A number with at most three decimals within its limits, in thousandths.
    pub(super) fn thousandths(&mut self, section: &Section<'_>, key: &str) -> Option<u32> {
        let (value, &Kind::Decimal { least, most }) = section.get(key)? else {
            return None;
        };
        let number = match value.get_ref() {
            DeValue::Integer(digits) if digits.radix() == 10 => thousandths_of(digits.as_str()),
            DeValue::Float(decimal) => thousandths_of(decimal.as_str()),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let (low, high) = (f64::from(least) / THOUSAND, f64::from(most) / THOUSAND);
            let expected = format!("a number from {low:?} to {high:?} with at most three decimals");
            self.wrong(&section.path_of(key), value.span(), &expected);
        }
        number
    }

    /// A list of different names.
    pub(super) fn names(&mut self, section: &Section<'_>, key: &str) -> Option<Vec<String>> {
        let (value, &Kind::Names { check, .. }) = section.get(key)? else {
            return None;
        };
        let path = section.path_of(key);
        let Some(elements) = value.get_ref().as_array() else {
            self.wrong(&path, value.span(), "a list of strings");
            return None;
        };
        if elements.len() > NAMES_MAX {
            let message = format!(
                "`{path}` has {} names, expected at most {NAMES_MAX}",
                elements.len()
            );
            self.add(value.span().start, message);
        }
        let mut names = Vec::new();
        for (index, element) in elements.iter().take(NAMES_MAX).enumerate() {
            let path = format!("{path}[{index}]");
            match self.name(&path, element, check) {
                Some(name) if names.contains(&name) => {
                    self.wrong(&path, element.span(), "each name once");
                }
                Some(name) => names.push(name),
                None => {}
            }
        }
        Some(names)
    }

    fn name(
        &mut self,
        path: &str,
        element: &Spanned<DeValue<'_>>,
        check: fn(&str) -> Result<String, &'static str>,
    ) -> Option<String> {
        let checked = element.get_ref().as_str().ok_or("a string").and_then(check);
        checked
            .map_err(|expected| self.wrong(path, element.span(), expected))
            .ok()
    }

    pub(super) fn wrong(&mut self, path: &str, span: Range<usize>, expected: &str) {
        let at = span.start;
        let shown = shown(self.text.get(span).unwrap_or_default());
        self.add(at, format!("`{path}` is `{shown}`, expected {expected}"));
    }

    pub(super) fn add(&mut self, at: usize, message: String) {
        let (line, column) = self.position(at);
        let problem = Problem {
            file: self.file.to_owned(),
            line,
            column,
            message,
        };
        self.problems.push((at, problem));
    }

    /// Line and column of a byte, both from 1, the column in characters.
    fn position(&self, at: usize) -> (u32, u32) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        (
            u32::try_from(line).unwrap_or(u32::MAX),
            u32::try_from(column).unwrap_or(u32::MAX),
        )
    }
}

/// A value as the file writes it, on one line and not too long.
fn shown(value: &str) -> String {
    let one_line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    if one_line.chars().count() <= SHOWN_CHARS_MAX {
        return one_line;
    }
    let mut start: String = one_line.chars().take(SHOWN_CHARS_MAX).collect();
    start.push('…');
    start
}

/// Reads `12`, `1.25` or `1e2` exactly; `None` where more than three decimals would be lost.
fn thousandths_of(number: &str) -> Option<u32> {
    let value: f64 = number.parse().ok()?;
    let thousandths = value * THOUSAND;
    let whole = thousandths.round();
    let in_range = (0.0..=f64::from(u32::MAX)).contains(&whole);
    let exact = (thousandths - whole).abs() < 1e-6;
    (in_range && exact).then_some(whole as u32)
}
