use super::*;

fn tally(events: &[&str]) -> StreamTally {
    let mut tally = StreamTally::default();
    for data in events {
        tally.absorb(data.as_bytes()).unwrap();
    }
    tally
}

#[test]
fn rc_105_a_usage_chunk_behind_the_finish_reason_is_part_of_a_complete_stream() {
    let whole = [
        r#"{"choices":[{"index":0,"delta":{"content":"Hi."},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2,"total_tokens":6}}"#,
        "[DONE]",
    ];
    for length in 1..=whole.len() {
        assert!(tally(&whole[..length]).is_complete());
    }
    let end = tally(&whole);
    assert!(end.done);
    assert_eq!(end.usage.unwrap().total_tokens, 6);
}

#[test]
fn rc_106_the_last_usage_wins() {
    let end = tally(&[
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"b"}}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#,
    ]);
    let usage = end.usage.unwrap();
    assert_eq!(
        (
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.total_tokens
        ),
        (9, 2, 11)
    );
}

#[test]
fn a_stream_without_an_end_or_with_an_error_is_not_complete() {
    assert!(!tally(&[r#"{"choices":[{"delta":{"content":"a"}}]}"#]).is_complete());
    assert!(!tally(&[r#"{"error":{"message":"x"}}"#, "[DONE]"]).is_complete());
}

#[test]
fn data_that_is_no_json_leaves_the_tally_as_it_was() {
    let mut tally = tally(&[r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#]);
    let before = tally.clone();
    assert!(tally.absorb(b"{oops").is_err());
    assert_eq!(tally, before);
}
