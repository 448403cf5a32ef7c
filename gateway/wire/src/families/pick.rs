//! The family of a model by its whole name.

use super::Family;

/// The family with the most marks in the template, none where two families have equally many.
pub(super) fn by_template<'a>(rows: &'a [Family], template: &str) -> Option<&'a Family> {
    let marks = |family: &Family| family.template.iter().map(String::len).sum::<usize>();
    let fits = |family: &&Family| {
        let all = family
            .template
            .iter()
            .all(|mark| template.contains(&**mark));
        all && marks(family) > 0
    };
    let best = rows
        .iter()
        .filter(fits)
        .max_by_key(|family| marks(family))?;
    let equal = rows
        .iter()
        .filter(fits)
        .filter(|family| marks(family) == marks(best));
    (equal.count() == 1).then_some(best)
}

/// The best pattern's family, none where two families have equally good ones.
pub(super) fn best<'a>(rows: &'a [Family], model: &str) -> Option<&'a Family> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.to_lowercase().replace('_', "-");
    let mut best: Option<(usize, &Family)> = None;
    let mut tied = false;
    for family in rows {
        let fitting = family.models.iter().filter(|pattern| fits(pattern, &name));
        let Some(text) = fitting.map(|pattern| own_text(pattern)).max() else {
            continue;
        };
        match best {
            Some((most, _)) if most > text => {}
            Some((most, _)) if most == text => tied = true,
            _ => {
                best = Some((text, family));
                tied = false;
            }
        }
    }
    best.filter(|_| !tied).map(|(_, family)| family)
}

/// Bytes of a pattern that stand for themselves.
fn own_text(pattern: &str) -> usize {
    pattern
        .bytes()
        .filter(|byte| !matches!(byte, b'*' | b'#'))
        .count()
}

/// Whether the pattern fits the whole name. Patterns and names are short: trying every length is cheap enough.
fn fits(pattern: &str, name: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => name.is_empty(),
        Some('*') => tails(name).any(|tail| fits(rest.as_str(), tail)),
        Some('#') => {
            let number = name
                .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
                .unwrap_or(name.len());
            (1..=number).any(|taken| fits(rest.as_str(), name.get(taken..).unwrap_or("")))
        }
        Some(letter) => name
            .strip_prefix(letter)
            .is_some_and(|tail| fits(rest.as_str(), tail)),
    }
}

fn tails(name: &str) -> impl Iterator<Item = &str> {
    (0..=name.len()).filter_map(|at| name.get(at..))
}
