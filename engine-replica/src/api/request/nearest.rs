//! The known name that a mistyped one most likely meant.

/// Names longer than this are not compared: nobody mistypes one by that much.
const NAME_BYTES_MAX: usize = 64;

/// The known name at the smallest edit distance, where that is at most a third of the name.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    known
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(name.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in bytes, one row at a time.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != y))
                .min(above + 1)
                .min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expect: Option<&str>) {
        let known = ["temperature", "top_p", "top_k", "max_tokens", "messages"];
        assert_eq!(nearest(name, known.into_iter()), expect, "{name}");
    }

    #[test]
    fn a_small_slip_finds_its_name_and_a_stranger_none() {
        check("temprature", Some("temperature"));
        check("maxtokens", Some("max_tokens"));
        check("top-p", Some("top_p"));
        check("message", Some("messages"));
        check("banana", None);
        check("", None);
        check(&"t".repeat(65), None);
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
