//! Files with wrong bits, wrong lengths and missing ends.

use proptest::prelude::*;

use super::open_bytes;
use crate::loader::gguf::writer::Writer;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever is done to a file, it opens or is refused in words; nothing panics and no length is believed.
    #[test]
    fn a_damaged_file_is_refused_in_words(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = Writer::tiny("qwen3").bytes();
        // Damage to weights is not seen by design, so aim at the header, which is the first eighth or so.
        let header = bytes.len() / 8;
        for (at, bit) in flips {
            bytes[at.index(header)] ^= 1 << bit;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Err(error) = open_bytes(&bytes) {
            prop_assert!(!error.problems().is_empty());
            prop_assert!(error.problems().iter().all(|problem| !problem.is_empty()));
        }
    }

    /// Every proper prefix of a file lacks something.
    #[test]
    fn a_file_cut_short_is_refused(cut in any::<prop::sample::Index>()) {
        let bytes = Writer::tiny("llama").bytes();
        let cut = cut.index(bytes.len());
        prop_assert!(open_bytes(&bytes[..cut]).is_err());
    }

    /// Huge counts and lengths in the places where they hurt.
    #[test]
    fn a_huge_count_allocates_nothing(at in 8_usize..200, value in prop::num::u64::ANY) {
        let mut bytes = Writer::tiny("llama").bytes();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        let _ = open_bytes(&bytes);
    }
}
