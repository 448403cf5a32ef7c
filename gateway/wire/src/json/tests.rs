use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::cursor::Cursor;
use super::{JsonPath, PathError, ScanError};
use crate::limits::JSON_DEPTH_MAX;

fn read(text: &[u8]) -> Result<(), ScanError> {
    let mut cursor = Cursor::new(text);
    cursor.skip_value()?;
    cursor.end()
}

/// `expect` is empty for valid JSON, else what the error says.
#[track_caller]
fn check(text: &str, expect: &str) {
    let said = read(text.as_bytes()).map_or_else(|e| e.to_string(), |()| String::new());
    assert_eq!(said, expect, "{text}");
    let serde = serde_json::from_str::<IgnoredAny>(text).is_ok();
    assert_eq!(
        serde,
        expect.is_empty(),
        "serde_json thinks otherwise of {text}"
    );
}

#[test]
fn valid_json_is_passed_and_other_text_is_refused_at_its_place() {
    check(
        r#"{"a":[1,-0.5e+10,true,false,null,"x\u00e9\n"],"b":{}}"#,
        "",
    );
    check(" [ ] ", "");
    check("0", "");
    check("", "at byte 0: expected a JSON value");
    check("01", "at byte 1: expected nothing after the closing brace");
    check("-", "at byte 1: expected a digit");
    check("1.", "at byte 2: expected a digit");
    check("1e", "at byte 2: expected a digit");
    check("nul", "at byte 0: expected a JSON value");
    check("[1,]", "at byte 3: expected a JSON value");
    check("[1 2]", "at byte 3: expected `,` or `]`");
    check(r#"{"a" 1}"#, "at byte 5: expected `:`");
    check(r#"{"a":1,}"#, "at byte 7: expected a key in double quotes");
    check(r#"{"a":1]"#, "at byte 6: expected `,` or `}`");
    check(r#"{a:1}"#, "at byte 1: expected a key in double quotes");
    check(r#""abc"#, "at byte 4: expected a closing double quote");
    check(
        r#""a\"#,
        "at byte 3: expected one of `\"\\/bfnrtu` behind the backslash",
    );
    check(
        r#""\x""#,
        "at byte 2: expected one of `\"\\/bfnrtu` behind the backslash",
    );
    check(r#""\u12g4""#, "at byte 3: expected four hexadecimal digits");
    check(
        "\"a\nb\"",
        "at byte 2: expected an escape such as `\\n` in place of a control character",
    );
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: u32| {
        let levels = levels as usize;
        [vec![b'['; levels], vec![b']'; levels]].concat()
    };
    assert!(read(&nested(JSON_DEPTH_MAX)).is_ok());
    let error = read(&nested(JSON_DEPTH_MAX + 1)).unwrap_err();
    assert_eq!(error.offset, JSON_DEPTH_MAX as usize);
    assert_eq!(
        error.to_string(),
        "at byte 128: expected at most 128 nested objects and arrays"
    );
}

#[test]
fn a_path_is_names_joined_by_dots() {
    let shown = |text: &str| JsonPath::parse(text).map(|path| path.to_string());
    assert_eq!(
        shown("metadata.session_id"),
        Ok("metadata.session_id".to_owned())
    );
    assert_eq!(shown(""), Err(PathError::EmptyName));
    assert_eq!(shown("a..b"), Err(PathError::EmptyName));
    assert_eq!(shown("a.b.c.d.e.f.g.h"), Ok("a.b.c.d.e.f.g.h".to_owned()));
    assert_eq!(shown("a.b.c.d.e.f.g.h.i"), Err(PathError::TooLong));
}

/// Text over JSON's own characters, so that many samples are valid or nearly so.
fn nearly_json() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\"a\"", "\"\\n\"", "\\u00e9", "0", "1", "-",
        ".", "e", "true", "null", " ", "\n", "é", "\u{1}",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn accepts_exactly_what_serde_json_accepts(text in nearly_json()) {
        let serde = serde_json::from_str::<IgnoredAny>(&text);
        prop_assert_eq!(read(text.as_bytes()).is_ok(), serde.is_ok(), "{}", text);
    }

    #[test]
    fn strings_mean_what_serde_json_says(inside in r#"(\\[nrtbf/\\"]|\\u[dD][89cC][0-9a-f]{2}|\\u00[0-9a-f]{2}|[aé茶 ]){0,6}"#) {
        let text = format!("\"{inside}\"");
        let meant = Cursor::new(text.as_bytes()).string().and_then(|raw| raw.to_text());
        prop_assert_eq!(meant.ok(), serde_json::from_str::<String>(&text).ok(), "{}", text);
    }

    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = read(&bytes);
    }
}

proptest! {
    #[test]
    fn the_next_special_byte_is_found_wherever_it_lies(
        length in 0..120usize,
        at in 0..120usize,
        byte in any::<u8>(),
        place in 0..120usize,
        fill in prop::sample::select(vec![b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff]),
    ) {
        let mut bytes = vec![fill; length];
        if let Some(slot) = bytes.get_mut(place) {
            *slot = byte;
        }
        let at = at.min(length);
        let is_special = |b: &u8| *b < 0x20 || *b == b'"' || *b == b'\\';
        let naive = bytes[at..].iter().position(is_special).map_or(length, |found| at + found);
        prop_assert_eq!(super::special::next(&bytes, at), naive);
    }
}
