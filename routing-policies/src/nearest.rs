//! The known key that a misspelt one most likely means.

/// Edits at most between a misspelt key and what it is taken for: a third of its length, at least 1.
fn edits_max(key: &str) -> usize {
    (key.chars().count() / 3).max(1)
}

/// The nearest of `known`, the first of several; `None` where none is near.
pub(crate) fn nearest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let distances = known
        .iter()
        .map(|candidate| (distance(key, candidate), *candidate));
    let (edits, candidate) = distances.min_by_key(|(edits, _)| *edits)?;
    (edits <= edits_max(key)).then_some(candidate)
}

/// Levenshtein's distance in characters: insertions, deletions and replacements.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a_char) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b_char) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a_char != *b_char);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
