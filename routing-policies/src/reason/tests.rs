use super::*;

#[test]
fn each_reason_has_a_word_and_a_sentence_of_its_own() {
    for (index, reason) in Reason::ALL.iter().enumerate() {
        for other in &Reason::ALL[..index] {
            assert_ne!(reason, other);
            assert_ne!(reason.as_str(), other.as_str());
            assert_ne!(reason.sentence(), other.sentence());
        }
        let word = reason.as_str();
        assert!(
            word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
            "{word}"
        );
    }
}
