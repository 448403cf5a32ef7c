//! Walks a parsed TOML file by position, so that every problem is found in one pass and says where it stands.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The problems of one file, collected while it is read.
pub(super) struct Problems<'t> {
    file: &'t str,
    text: &'t str,
    list: Vec<(usize, String)>,
}

impl<'t> Problems<'t> {
    pub(super) fn new(file: &'t str, text: &'t str) -> Self {
        Self {
            file,
            text,
            list: Vec::new(),
        }
    }

    /// Notes a problem at a byte offset of the file.
    pub(super) fn add(&mut self, at: usize, message: impl Display) {
        self.list.push((at, message.to_string()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All problems in the order of the file, each with its line and column.
    pub(super) fn into_report(mut self) -> Vec<String> {
        self.list.sort();
        let (file, text) = (self.file, self.text);
        let mut report: Vec<String> = self
            .list
            .iter()
            .map(|(at, message)| {
                let before = text.get(..*at).unwrap_or(text);
                let line = before.matches('\n').count() + 1;
                let start_of_line = before.rfind('\n').map_or(0, |at| at + 1);
                let column = before[start_of_line..].chars().count() + 1;
                format!("{file}:{line}:{column}: {message}")
            })
            .collect();
        let count = report.len();
        let noun = if count == 1 { "problem" } else { "problems" };
        report.push(format!(
            "{count} {noun} in {file}; the gateway did not start"
        ));
        report
    }
}

/// One table of the file. Every key that it may have is taken once; `finish` complains about the rest.
pub(super) struct Section<'s, 't> {
    path: String,
    at: usize,
    table: Option<&'s DeTable<'t>>,
    known: Vec<&'static str>,
}

impl<'s, 't> Section<'s, 't> {
    pub(super) fn root(table: &'s Spanned<DeTable<'t>>) -> Self {
        Self {
            path: String::new(),
            at: 0,
            table: Some(table.get_ref()),
            known: Vec::new(),
        }
    }

    /// Where this table starts in the file, in bytes.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Whether the file has this table at all.
    pub(super) fn is_present(&self) -> bool {
        self.table.is_some()
    }

    fn dotted(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn take(&mut self, key: &'static str) -> Option<&'s Spanned<DeValue<'t>>> {
        self.known.push(key);
        self.table?.get(key)
    }

    fn wrong(
        &self,
        problems: &mut Problems<'_>,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        expected: impl Display,
    ) {
        let path = self.dotted(key);
        let shown = shown(problems.text, &value.span());
        problems.add(
            value.span().start,
            format!("`{path}` is `{shown}`, expected {expected}"),
        );
    }

    /// A string with its place in the file.
    pub(super) fn string(
        &mut self,
        problems: &mut Problems<'_>,
        key: &'static str,
    ) -> Option<(&'s str, usize)> {
        let value = self.take(key)?;
        if let Some(text) = value.get_ref().as_str() {
            return Some((text, value.span().start));
        }
        self.wrong(problems, key, value, "a string in quotes");
        None
    }

    /// A string that `parse` understands; `expected` names what it takes.
    pub(super) fn parsed<T>(
        &mut self,
        problems: &mut Problems<'_>,
        key: &'static str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let (text, at) = self.string(problems, key)?;
        let parsed = parse(text);
        if parsed.is_none() {
            let path = self.dotted(key);
            problems.add(at, format!("`{path}` is `{text}`, expected {expected}"));
        }
        parsed
    }

    /// A whole number within `allowed`, or `default` where the key is absent.
    pub(super) fn integer(
        &mut self,
        problems: &mut Problems<'_>,
        key: &'static str,
        allowed: RangeInclusive<u64>,
        default: u64,
    ) -> u64 {
        let Some(value) = self.take(key) else {
            return default;
        };
        let number = value
            .get_ref()
            .as_integer()
            .and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        match number {
            Some(number) if allowed.contains(&number) => number,
            _ => {
                let expected = format!(
                    "a whole number from {} to {}",
                    allowed.start(),
                    allowed.end()
                );
                self.wrong(problems, key, value, expected);
                default
            }
        }
    }

    /// A table within this one; reads as empty where it is absent.
    pub(super) fn section(&mut self, problems: &mut Problems<'_>, key: &'static str) -> Self {
        let path = self.dotted(key);
        let empty = Section {
            path: path.clone(),
            at: 0,
            table: None,
            known: Vec::new(),
        };
        let Some(value) = self.take(key) else {
            return empty;
        };
        if let Some(table) = value.get_ref().as_table() {
            return Section {
                path,
                at: value.span().start,
                table: Some(table),
                known: Vec::new(),
            };
        }
        self.wrong(problems, key, value, format!("a table `[{path}]`"));
        empty
    }

    /// The tables of an array `[[key]]`, in the order of the file.
    pub(super) fn tables(&mut self, problems: &mut Problems<'_>, key: &'static str) -> Vec<Self> {
        let path = self.dotted(key);
        let Some(value) = self.take(key) else {
            return Vec::new();
        };
        let Some(array) = value.get_ref().as_array() else {
            self.wrong(
                problems,
                key,
                value,
                format!("one table `[[{path}]]` for each"),
            );
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (index, item) in array.iter().enumerate() {
            let path = format!("{path}[{index}]");
            match item.get_ref().as_table() {
                Some(table) => sections.push(Section {
                    path,
                    at: item.span().start,
                    table: Some(table),
                    known: Vec::new(),
                }),
                None => problems.add(item.span().start, format!("`{path}` is not a table")),
            }
        }
        sections
    }

    /// Notes a key that has to be there and is not.
    pub(super) fn missing(&self, problems: &mut Problems<'_>, key: &str, expected: &str) {
        if self.table.is_none_or(|table| !table.contains_key(key)) {
            problems.add(
                self.at,
                format!("`{}` is missing, expected {expected}", self.dotted(key)),
            );
        }
    }

    /// Complains about each key that nobody took.
    pub(super) fn finish(self, problems: &mut Problems<'_>) {
        for key in self.table.into_iter().flat_map(|table| table.keys()) {
            let name: &str = key.get_ref();
            if self.known.contains(&name) {
                continue;
            }
            let hint = match nearest(name, &self.known) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => format!("; known keys: {}", self.known.join(", ")),
            };
            let path = self.dotted(name);
            problems.add(key.span().start, format!("unknown key `{path}`{hint}"));
        }
    }
}

/// The value as the file spells it, cut to a line's length.
fn shown(text: &str, span: &Range<usize>) -> String {
    const SHOWN_CHARS_MAX: usize = 40;
    let whole = text.get(span.clone()).unwrap_or_default();
    let line = whole.lines().next().unwrap_or_default();
    let mut cut: String = line.chars().take(SHOWN_CHARS_MAX).collect();
    if cut.len() < whole.len() {
        cut.push('…');
    }
    cut
}

/// The known key that is at most a third of its letters away.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let (distance, near) = known.iter().map(|key| (distance(name, key), *key)).min()?;
    (distance <= near.len() / 3).then_some(near)
}

/// Edit distance in bytes; keys are short, so the plain table is fine.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.bytes().enumerate() {
            let replace = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[right.len()]
}
