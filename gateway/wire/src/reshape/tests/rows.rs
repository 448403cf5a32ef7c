use super::*;

/// The events that go out, one a line, or the changed whole answer.
#[track_caller]
fn check(plan: Plan, events: &[&str], expect: &[&str]) {
    let events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
    let (mut out, mut reshaper) = stream(plan, &events);
    out.extend(
        reshaper
            .flush()
            .map(|event| String::from_utf8(event.to_vec()).unwrap()),
    );
    assert_eq!(out, expect);
}

#[track_caller]
fn check_whole(plan: Plan, message: &str, expect: &str) {
    let body = |message: &str| {
        format!(r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"length"}}]}}"#)
    };
    let (new, _) = Reshaper::new(plan).answer(&body(message).into()).unwrap();
    assert_eq!(String::from_utf8(new.to_vec()).unwrap(), body(expect));
}

#[test]
fn an_event_is_spliced_where_its_text_changes_and_left_alone_where_not() {
    check(
        plan("deepseek-r1"),
        &[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"why </th"}, "x":1}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"ink"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":">\n\n"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"so \u00e9"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":" it <"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":null},"finish_reason":"stop"}]}"#,
        ],
        &[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"reasoning_content":"why "}, "x":1}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"so \u00e9"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":" it <"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":null},"finish_reason":"stop"}]}"#,
        ],
    );
}

#[test]
fn each_choice_has_a_state_of_its_own() {
    // RC-047
    let text = [
        (0, "red"),
        (1, "blue"),
        (0, "</think>Rose"),
        (1, " sky"),
        (0, "."),
        (1, "</think>Lake."),
    ];
    let mut events: Vec<String> = text.iter().map(|(n, text)| delta(*n, text)).collect();
    events.extend([finish(0), finish(1)]);
    let (events, _) = stream(plan("deepseek-r1"), &events);
    for (index, reasoning, content) in [(0, "red", "Rose."), (1, "blue sky", "Lake.")] {
        let expect = Split {
            reasoning: Some(reasoning.into()),
            content: Some(content.into()),
        };
        assert_eq!(gathered(&events, index, "reasoning_content"), expect);
    }
    // Two choices in one event.
    let both = r#"{"choices":[{"index":0,"delta":{"content":"a</think>b"}},{"index":1,"delta":{"content":"c"}}]}"#;
    check(
        plan("deepseek-r1"),
        &[both],
        &[
            r#"{"choices":[{"index":0,"delta":{"reasoning_content":"a","content":"b"}},{"index":1,"delta":{"reasoning_content":"c"}}]}"#,
        ],
    );
}

#[test]
fn an_engines_own_split_is_renamed_and_never_doubled() {
    // RC-159
    let reasoning = r#"{"choices":[{"index":0,"delta":{"reasoning":"a\n"}}]}"#;
    let content = r#"{"choices":[{"index":0,"delta":{"content":"b <think> c"}}]}"#;
    let renamed = r#"{"choices":[{"index":0,"delta":{"reasoning_content":"a\n"}}]}"#;
    check(
        plan("deepseek-r1"),
        &[reasoning, content],
        &[renamed, content],
    );
    let with = |field| Plan {
        field,
        ..plan("none")
    };
    check(with(FieldName::Reasoning), &[renamed], &[reasoning]);
    let both = r#"{"choices":[{"index":0,"delta":{"reasoning_content":"a\n","reasoning":"a\n"}}]}"#;
    check(with(FieldName::Both), &[reasoning, both], &[both, both]);
    check(
        with(FieldName::ReasoningContent),
        &[both],
        &[r#"{"choices":[{"index":0,"delta":{"reasoning_content":"a\n","reasoning":null}}]}"#],
    );
    let nulls = r#"{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":null,"reasoning":"a"}}]}"#;
    check(
        with(FieldName::ReasoningContent),
        &[nulls],
        &[
            r#"{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"a","reasoning":null}}]}"#,
        ],
    );
    // SGLang has the field in every delta, also where it does not split.
    let empty =
        r#"{"choices":[{"index":0,"delta":{"content":"a</think>b","reasoning_content":null}}]}"#;
    check(
        plan("deepseek-r1"),
        &[empty],
        &[r#"{"choices":[{"index":0,"delta":{"content":"b","reasoning_content":"a"}}]}"#],
    );
}

#[test]
fn what_an_engine_told_twice_is_told_once() {
    // RC-004
    check_whole(
        plan("qwen3"),
        r#"{"role":"assistant","reasoning":"Add the tolls.","reasoning_content":"Add the tolls.","content":"<think>Add the tolls.</think>Nine coins."}"#,
        r#"{"role":"assistant","reasoning":null,"reasoning_content":"Add the tolls.","content":"Nine coins."}"#,
    );
}

#[test]
fn a_replica_that_is_known_to_split_is_left_to_it() {
    let plan = Plan {
        engine_splits: true,
        ..plan("deepseek-r1")
    };
    let content = r#"{"choices":[{"index":0,"delta":{"content":"b"}}]}"#;
    check(plan, &[content], &[content]);
}

#[test]
fn a_whole_answer_has_null_where_a_field_has_no_text() {
    // RC-036
    check_whole(
        plan("deepseek-r1"),
        r#"{"role":"assistant","content":"There are many ways"}"#,
        r#"{"role":"assistant","reasoning_content":"There are many ways","content":null}"#,
    );
    // RC-057: the newlines between the closer and a call that the replica has read are no answer.
    check_whole(
        plan("qwen3"),
        r#"{"content":"<think>call</think>\n\n","tool_calls":[{"id":"c"}]}"#,
        r#"{"reasoning_content":"call","content":null,"tool_calls":[{"id":"c"}]}"#,
    );
}

#[test]
fn calls_end_with_the_reason_of_calls() {
    // RC-061
    let call = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}]}}]}"#;
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let calls = stop.replace("stop", "tool_calls");
    check(plan("none"), &[call, stop], &[call, &calls]);
    check(plan("none"), &[stop], &[stop]);
}

#[test]
fn reasoning_tokens_are_always_told() {
    let usage = |details: &str| {
        format!(r#"{{"choices":[],"usage":{{"prompt_tokens":3,"completion_tokens":40{details}}}}}"#)
    };
    let text = delta(0, "<think>123456</think>12");
    let check = |events: &[&str], before: &str, after: &str| {
        let mut events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
        events.push(usage(before));
        let (out, _) = stream(plan("qwen3"), &events);
        // A member is added in front of the others.
        let plain = |text: &str| {
            text.replace(after.trim_start_matches(','), "")
                .replace("{,", "{")
                .replace(",}", "}")
        };
        let last = out.last().unwrap();
        assert!(last.contains(after.trim_start_matches(',')), "{last}");
        assert_eq!(plain(last), plain(&usage(after)), "{before}");
    };
    let details = |n: u32| format!(r#","completion_tokens_details":{{"reasoning_tokens":{n}}}"#);
    check(&[], "", &details(0));
    check(&[&text], "", &details(30));
    check(&[&text], &details(0), &details(30));
    check(&[&text], &details(7), &details(7));
    check(
        &[&text],
        r#","completion_tokens_details":null"#,
        &details(30),
    );
    check(&[&text], r#","completion_tokens_details":{}"#, &details(30));
}

#[test]
fn a_stream_that_breaks_off_gives_what_was_held_back() {
    check(
        plan("qwen3"),
        &[r#"{"id":"c","choices":[{"index":0,"delta":{"content":"1 <"}}],"usage":null}"#],
        &[
            r#"{"id":"c","choices":[{"index":0,"delta":{"content":"1 "}}],"usage":null}"#,
            r#"{"id":"c","choices":[{"index":0,"delta":{"content":"<"},"finish_reason":null}],"usage":null}"#,
        ],
    );
    check(plan("qwen3"), &[], &[]);
}

#[test]
fn text_that_is_none_is_shown_as_it_came_or_not_at_all() {
    let half = r#"{"choices":[{"index":0,"delta":{"content":"\ud83d"}}]}"#;
    check(plan("qwen3"), &[half], &[half]);
    let hidden = Plan {
        shown: Shown::Hidden,
        ..plan("qwen3")
    };
    check(
        hidden,
        &[half],
        &[r#"{"choices":[{"index":0,"delta":{"content":null}}]}"#],
    );
}

#[test]
fn hidden_reasoning_of_an_engine_is_gone_with_its_traces() {
    let hidden = Plan {
        shown: Shown::Hidden,
        ..plan("none")
    };
    check(
        hidden.clone(),
        &[
            r#"{"choices":[{"index":0,"delta":{"reasoning":"a"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","reasoning":"a","reasoning_details":[{"text":"a"}]},"logprobs":{"content":[]},"token_ids":[1]}]}"#,
        ],
        &[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","reasoning":null,"reasoning_details":null},"logprobs":null,"token_ids":null}]}"#,
        ],
    );
    let summary = Plan {
        shown: Shown::Summary,
        ..hidden
    };
    check(
        summary,
        &[
            r#"{"choices":[{"index":0,"delta":{"reasoning":"abc"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"d"}}]}"#,
        ],
        &[
            r#"{"choices":[{"index":0,"delta":{"reasoning_content":"3 characters of reasoning","content":"d"}}]}"#,
        ],
    );
}
