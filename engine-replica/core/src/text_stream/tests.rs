use proptest::prelude::*;

use super::*;

/// Each token is a piece of bytes; those listed in `special` are special.
struct Pieces {
    bytes: Vec<Vec<u8>>,
    special: Vec<u32>,
}

impl TokenText for Pieces {
    fn bytes(&self, token: u32) -> &[u8] {
        self.bytes.get(token as usize).map_or(&[], Vec::as_slice)
    }

    fn is_special(&self, token: u32) -> bool {
        self.special.contains(&token)
    }
}

/// The deltas that `pieces` give, the last from `finish`, and whether a stop string came.
fn deltas(pieces: &[&[u8]], stops: &[&str]) -> (Vec<String>, bool) {
    let vocabulary = Pieces {
        bytes: pieces.iter().map(|piece| piece.to_vec()).collect(),
        special: vec![],
    };
    let mut stream = TextStream::new(stops.iter().map(ToString::to_string).collect(), false);
    let mut deltas: Vec<_> = (0..pieces.len() as u32)
        .map(|token| stream.push(token, &vocabulary))
        .collect();
    deltas.push(stream.finish());
    let stopped = deltas.iter().any(|delta| delta.stopped);
    (
        deltas.into_iter().map(|delta| delta.text).collect(),
        stopped,
    )
}

#[track_caller]
fn check(pieces: &[&str], stops: &[&str], expect: &[&str], expect_stopped: bool) {
    let pieces: Vec<_> = pieces.iter().map(|piece| piece.as_bytes()).collect();
    let (texts, stopped) = deltas(&pieces, stops);
    assert_eq!(
        (texts, stopped),
        (
            expect.iter().map(ToString::to_string).collect(),
            expect_stopped
        )
    );
}

#[test]
fn only_what_may_become_a_stop_string_is_held_back() {
    check(&["a", "b"], &[], &["a", "b", ""], false);
    check(&["a", "b"], &["END"], &["a", "b", ""], false);
    check(
        &["xE", "N", "D", "y"],
        &["END"],
        &["x", "", "", "", ""],
        true,
    );
    check(&["xE", "N", "x"], &["END"], &["x", "", "ENx", ""], false);
    check(&["aEEN", "D"], &["END"], &["aE", "", ""], true);
    check(&["one END two"], &["END"], &["one ", ""], true);
}

/// RC-037, RC-038: one letter of the mark alone, and text and the mark's beginning in one piece.
#[test]
fn rc037_rc038_a_mark_cut_anywhere_never_leaks() {
    check(
        &["done", "<", "/s", ">"],
        &["</s>"],
        &["done", "", "", "", ""],
        true,
    );
    check(&["done<", "/s>more"], &["</s>"], &["done", "", ""], true);
}

/// RC-040: the answer ends while the beginning of a mark is held.
#[test]
fn rc040_what_is_held_at_the_end_is_text() {
    check(&["a <", "/"], &["</s>"], &["a ", "", "</"], false);
}

#[test]
fn the_stop_string_that_ends_first_wins_and_then_the_longest() {
    check(&["abc"], &["abc", "b"], &["a", ""], true);
    check(&["xbc"], &["b", "xb"], &["", ""], true);
    check(&["x", "b"], &["b", "xb"], &["", "", ""], true);
    check(&["ab"], &[""], &["ab", ""], false);
}

/// RC-100: a character cut by tokens is not two U+FFFD.
#[test]
fn rc100_a_character_cut_by_tokens_comes_whole() {
    let (texts, _) = deltas(&[b"caf\xc3", b"\xa9 ", b"\xf0\x9f", b"\xa6", b"\x80"], &[]);
    assert_eq!(texts, ["caf", "é ", "", "", "🦀", ""]);
}

#[test]
fn bytes_of_no_character_are_replaced_and_an_unfinished_one_at_the_end() {
    let (texts, _) = deltas(&[b"a\xff", b"\xe2\x82", b"b\xe2\x82"], &[]);
    assert_eq!(texts, ["a\u{fffd}", "", "\u{fffd}b", "\u{fffd}"]);
}

#[test]
fn special_tokens_are_text_only_when_asked_for() {
    let vocabulary = Pieces {
        bytes: vec![b"hi".to_vec(), b"<end>".to_vec()],
        special: vec![1],
    };
    for (show_special, expect) in [(false, "hi"), (true, "hi<end>")] {
        let mut stream = TextStream::new(vec![], show_special);
        let text: String = [0, 1, 7]
            .iter()
            .map(|&token| stream.push(token, &vocabulary).text)
            .collect();
        assert_eq!(text + &stream.finish().text, expect);
    }
}

/// RC-046: nothing of one answer is left for the next.
#[test]
fn rc046_after_a_stop_nothing_more_comes() {
    let vocabulary = Pieces {
        bytes: vec![b"x".to_vec(), b"y".to_vec()],
        special: vec![],
    };
    let mut stream = TextStream::new(vec!["x".to_owned()], false);
    let stopped = TextDelta {
        text: String::new(),
        stopped: true,
    };
    assert_eq!(stream.push(0, &vocabulary), stopped);
    assert_eq!(stream.push(1, &vocabulary), stopped);
    assert_eq!(stream.finish(), stopped);
}

/// The obvious way: decode everything, then look for the first end of any stop string.
fn reference(bytes: &[u8], stops: &[String]) -> (String, bool) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    for end in (0..=text.len()).filter(|&end| text.is_char_boundary(end)) {
        let ended = stops
            .iter()
            .filter(|stop| !stop.is_empty() && text[..end].ends_with(*stop));
        if let Some(longest) = ended.map(String::len).max() {
            return (text[..end - longest].to_owned(), true);
        }
    }
    (text, false)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![b"a".to_vec(), b"b".to_vec(), "é".into(), "🦀".into()]),
        1 => prop::sample::select(vec![vec![0xff], vec![0xe2, 0x82], vec![0xf0, 0x9f], vec![0xa9]]),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_cuts_give_the_same_text(
        bytes in bytes(),
        stops in prop::collection::vec("[abé]{0,4}", 0..3),
        cuts in prop::collection::vec(0..64usize, 0..12),
    ) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let stops_as_str: Vec<_> = stops.iter().map(String::as_str).collect();
        let (texts, stopped) = deltas(&pieces, &stops_as_str);
        prop_assert_eq!((texts.concat(), stopped), reference(&bytes, &stops));
    }
}
