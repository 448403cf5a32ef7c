use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::scan;

#[track_caller]
fn check(body: &'static str, expect: &str) {
    let body = Bytes::from_static(body.as_bytes());
    let mut edits = Edits::new();
    edits.include_usage(&scan::chat(&body, &[]).unwrap());
    let edited = edits.apply(&body).unwrap();
    assert_eq!(std::str::from_utf8(&edited).unwrap(), expect);
    let again = scan::chat(&edited, &[]).unwrap();
    assert_eq!(again.stream_options.unwrap().include_usage, Some(true));
}

#[test]
fn usage_is_asked_for_with_the_fewest_bytes_changed() {
    check("{}", r#"{"stream_options":{"include_usage":true}}"#);
    check(
        r#"{"a":1 }"#,
        r#"{"a":1 ,"stream_options":{"include_usage":true}}"#,
    );
    check(
        r#"{"stream_options":null,"a":1}"#,
        r#"{"stream_options":{"include_usage":true},"a":1}"#,
    );
    check(
        r#"{"stream_options":{}}"#,
        r#"{"stream_options":{"include_usage":true}}"#,
    );
    check(
        r#"{"stream_options":{ "x":1}}"#,
        r#"{"stream_options":{"include_usage":true, "x":1}}"#,
    );
    check(
        r#"{"stream_options":{"include_usage":false}}"#,
        r#"{"stream_options":{"include_usage":true}}"#,
    );
    check(
        r#"{"stream_options":{"include_usage": null }}"#,
        r#"{"stream_options":{"include_usage": true }}"#,
    );
    check(
        r#"{"stream_options":{"include_usage":true} }"#,
        r#"{"stream_options":{"include_usage":true} }"#,
    );
}

#[test]
fn rc_082_the_order_of_keys_in_a_tool_is_kept() {
    let body = br#"{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"zulu":{"type":"string"},"alpha":{"type":"string"}},"required":["zulu"]}}}]}"#;
    let body = Bytes::from_static(body);
    let mut edits = Edits::new();
    edits.include_usage(&scan::chat(&body, &[]).unwrap());
    let edited = edits.apply(&body).unwrap();
    assert!(edited.starts_with(&body[..body.len() - 1]));
}

#[test]
fn no_edit_is_no_copy() {
    let body = Bytes::from(vec![b'x'; 100]);
    let same = Edits::new().apply(&body).unwrap();
    assert_eq!(same.as_ptr(), body.as_ptr());
}

#[test]
fn edits_that_overlap_or_leave_the_body_are_refused() {
    let apply = |ranges: &[Range<usize>]| {
        let mut edits = Edits::new();
        for range in ranges {
            edits.replace(range.clone(), "-");
        }
        edits
            .apply(&Bytes::from_static(b"abcdef"))
            .map(|b| String::from_utf8(b.to_vec()).unwrap())
    };
    assert_eq!(apply(&[4..5, 0..1, 2..2]).as_deref(), Ok("-b-cd-f"));
    assert_eq!(apply(&[0..3, 2..4]), Err(SpliceError { range: 2..4 }));
    assert_eq!(apply(&[0..1, 5..7]), Err(SpliceError { range: 5..7 }));
    assert_eq!(
        SpliceError { range: 5..7 }.to_string(),
        "edit of bytes 5..7 overlaps another or leaves the body"
    );
}

proptest! {
    #[test]
    fn bytes_outside_the_edits_are_kept(
        pieces in prop::collection::vec(("[a-c]{0,4}", prop::option::of("[x-z]{0,4}")), 0..6),
    ) {
        // Each piece of the body is kept or replaced whole.
        let (mut body, mut expect, mut edits) = (String::new(), String::new(), Edits::new());
        for (old, new) in &pieces {
            let start = body.len();
            body.push_str(old);
            expect.push_str(new.as_ref().unwrap_or(old));
            if let Some(new) = new {
                edits.replace(start..body.len(), new.clone());
            }
        }
        prop_assert_eq!(edits.apply(&Bytes::from(body)).unwrap(), Bytes::from(expect));
    }

    #[test]
    fn asking_for_usage_changes_nothing_else(options in r#"(|,"stream_options":(null|\{("x":1)?\}|\{"include_usage":(true|false|1)\}))"#) {
        let body = Bytes::from(format!(r#"{{"model":"m"{options}}}"#));
        let mut edits = Edits::new();
        edits.include_usage(&scan::chat(&body, &[]).unwrap());
        let edited: Value = serde_json::from_slice(&edits.apply(&body).unwrap()).unwrap();
        let mut expect: Value = serde_json::from_slice(&body).unwrap();
        if !expect["stream_options"].is_object() {
            expect["stream_options"] = Value::Object(serde_json::Map::new());
        }
        expect["stream_options"]["include_usage"] = Value::Bool(true);
        prop_assert_eq!(edited, expect);
    }
}
