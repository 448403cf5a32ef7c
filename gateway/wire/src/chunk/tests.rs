use proptest::prelude::*;

use super::*;

/// What the scan says of `data`, one word per thing, or the error.
fn said(data: &str) -> String {
    let seen = match scan(data.as_bytes()) {
        Ok(seen) => seen,
        Err(error) => return error.to_string(),
    };
    let mut words = Vec::new();
    let flags = [
        ("content", seen.content),
        ("reasoning", seen.reasoning),
        ("tool_calls", seen.tool_calls),
        ("usage_only", seen.is_usage_only()),
    ];
    words.extend(
        flags
            .iter()
            .filter(|(_, on)| *on)
            .map(|(word, _)| (*word).to_owned()),
    );
    words.extend(seen.error.map(|span| format!("error={}", &data[span])));
    words.extend(
        seen.finish_reason
            .map(|reason| format!("{}×{}", reason.as_str(), seen.finished)),
    );
    if let Some(usage) = seen.usage {
        words.push(format!(
            "usage={}+{}={} cached={:?} reasoning={:?}",
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.total_tokens,
            usage.cached_tokens,
            usage.reasoning_tokens
        ));
    }
    words.join(" ")
}

#[track_caller]
fn check(data: &str, expect: &str) {
    assert_eq!(said(data), expect, "{data}");
}

#[test]
fn text_reasoning_and_tool_calls_are_told_apart() {
    check(
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
        "content",
    );
    check(
        r#"{"choices":[{"delta":{"reasoning_content":"a"}}]}"#,
        "reasoning",
    );
    // RC-159: the newer name of the same field.
    check(
        r#"{"choices":[{"delta":{"reasoning":"a","content":null}}]}"#,
        "reasoning",
    );
    check(
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}"#,
        "tool_calls",
    );
    check(
        r#"{"choices":[{"delta":{"function_call":{"name":"f"}}}]}"#,
        "tool_calls",
    );
    check(
        r#"{"choices":[{"delta":{"content":"","tool_calls":[ ],"reasoning":""}}]}"#,
        "",
    );
    check(
        r#"{"choices":[{"text":"a","finish_reason":"length"}]}"#,
        "content length×1",
    );
    check(
        r#"{"object":"chat.completion","choices":[{"message":{"content":"a"},"finish_reason":"stop"},{"message":{"content":null},"finish_reason":"tool_calls"}]}"#,
        "content tool_calls×2",
    );
    check(r#"{"choices":[{"delta":{},"finish_reason":null}]}"#, "");
    check(
        r#"{"choices":[{"delta":{},"finish_reason":"weird"}]}"#,
        "other×1",
    );
    check(
        r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#,
        "content_filter×1",
    );
}

#[test]
fn rc_147_a_role_alone_is_no_token() {
    let has_tokens = |data: &str| scan(data.as_bytes()).unwrap().has_tokens();
    let steps = [
        r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"a"}}]}"#,
        r#"{"choices":[{"delta":{"content":"B"}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    ];
    assert_eq!(steps.map(has_tokens), [false, true, true, false]);
    assert!(!scan(steps[1].as_bytes()).unwrap().content);
}

#[test]
fn usage_is_read_where_it_stands_and_nowhere_else() {
    check(
        r#"{"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2,"total_tokens":6}}"#,
        "usage_only usage=4+2=6 cached=None reasoning=None",
    );
    check(
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":0}}}"#,
        "usage_only usage=9+2=11 cached=Some(8) reasoning=Some(0)",
    );
    check(
        r#"{"choices":[],"usage":{"prompt_tokens":9,"prompt_tokens_details":null}}"#,
        "usage_only usage=9+0=9 cached=None reasoning=None",
    );
    check(
        r#"{"choices":[{"delta":{"content":"\"usage\":{\"prompt_tokens\":1}"}}],"usage":null}"#,
        "content",
    );
    check(
        r#"{"choices":[{"delta":{"usage":{"prompt_tokens":1}},"usage":{"prompt_tokens":1}}]}"#,
        "",
    );
}

#[test]
fn an_error_is_seen_in_each_of_its_shapes() {
    check(r#"{"error":{"message":"x"}}"#, r#"error={"message":"x"}"#);
    check(r#"{"error":"x","choices":[]}"#, r#"error="x""#);
    check(r#"{"error":null,"choices":[]}"#, "");
    check(
        r#"{"object":"error","message":"x"}"#,
        r#"error={"object":"error","message":"x"}"#,
    );
    check(
        r#"{"choices":[{"delta":{"content":"{\"error\":{}}"}}]}"#,
        "content",
    );
}

#[test]
fn what_is_no_json_object_is_refused_with_its_place() {
    check("[DONE]", "at byte 0: expected an object");
    check(
        r#"{"choices":[{"delta":{"content":"a"#,
        "at byte 34: expected a closing double quote",
    );
    check(r#"{"choices":7,"usage":"x"}"#, "");
    check(r#"{"choices":[7,{"delta":7}]}"#, "");
}

proptest! {
    #[test]
    fn never_panics(data in r#"(\{|\}|\[|\]|,|:|"choices"|"delta"|"usage"|"error"|"content"|"a"|1|null){0,16}"#) {
        let _ = scan(data.as_bytes());
    }
}
