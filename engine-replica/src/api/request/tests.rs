use super::*;
use proptest::prelude::*;
use serde_json::json;

const HI: &str = r#""messages":[{"role":"user","content":"hi"}]"#;

/// Parses a good conversation with `extra` fields beside it; `expect` is the whole message, or empty for none.
#[track_caller]
fn check(extra: &str, expect: &str) {
    let comma = if extra.is_empty() { "" } else { "," };
    check_body(&format!("{{{HI}{comma}{extra}}}"), expect);
}

#[track_caller]
fn check_body(body: &str, expect: &str) {
    let got = parse(body.as_bytes())
        .err()
        .map_or(String::new(), |failure| failure.message());
    assert_eq!(got, expect, "{body}");
}

#[track_caller]
fn check_content(message: &str, expect: &Value) {
    let body = format!("{{\"messages\":[{message}]}}");
    let request = parse(body.as_bytes()).unwrap();
    assert_eq!(&request.messages[0], expect, "{body}");
}

fn read(extra: &str) -> ChatRequest {
    parse(format!("{{{HI},{extra}}}").as_bytes()).unwrap()
}

#[test]
fn numbers_within_their_range_are_taken_and_others_named_with_it() {
    check("", "");
    check(
        r#""temperature":0,"top_p":1,"min_p":0.5,"top_k":-1,"presence_penalty":-2"#,
        "",
    );
    check(
        r#""temperature":3"#,
        "`temperature` is `3`, expected a number from 0 to 2",
    );
    check(
        r#""temperature":"1""#,
        "`temperature` is `1`, expected a number from 0 to 2",
    );
    check(
        r#""top_p":0"#,
        "`top_p` is `0`, expected a number above 0 and at most 1",
    );
    check(
        r#""top_k":-2"#,
        "`top_k` is `-2`, expected a whole number from -1 to 16777216",
    );
    check(
        r#""top_k":1.5"#,
        "`top_k` is `1.5`, expected a whole number from -1 to 16777216",
    );
    check(
        r#""min_p":1.1"#,
        "`min_p` is `1.1`, expected a number from 0 to 1",
    );
    check(
        r#""frequency_penalty":2.5"#,
        "`frequency_penalty` is `2.5`, expected a number from -2 to 2",
    );
    check(
        r#""repetition_penalty":0"#,
        "`repetition_penalty` is `0`, expected a number above 0 and at most 10",
    );
    check(
        r#""seed":1.5"#,
        "`seed` is `1.5`, expected a whole number of 64 bits",
    );
    assert_eq!(read(r#""seed":-1"#).sampling.seed, Some(u64::MAX));
    assert_eq!(read(r#""top_k":-1"#).sampling.top_k, Some(0));
}

#[test]
fn all_problems_are_told_at_once() {
    check(
        r#""temperature":9,"n":2,"temprature":1"#,
        "`n` is `2`: one answer a request; send the request again for another; \
         unknown field `temprature`; did you mean `temperature`?; \
         `temperature` is `9`, expected a number from 0 to 2",
    );
}

#[test]
fn the_problems_of_one_request_are_bounded() {
    let fields: Vec<String> = (0..100).map(|i| format!("\"zz{i}\":1")).collect();
    let failure = parse(format!("{{{HI},{}}}", fields.join(",")).as_bytes()).unwrap_err();
    let Failure::Invalid(problems) = failure else {
        panic!("{failure:?}")
    };
    assert_eq!(problems.len(), reader::PROBLEMS_MAX);
}

#[test]
fn a_feature_that_is_not_there_is_refused_and_its_neutral_value_let_through() {
    check(
        r#""n":1,"logit_bias":{},"tools":[],"tool_choice":"auto","store":false"#,
        "",
    );
    check(
        r#""response_format":{"type":"text"},"modalities":["text"],"thinking_token_budget":-1"#,
        "",
    );
    check(
        r#""tools":null,"audio":null,"functions":null,"reasoning_effort":null"#,
        "",
    );
    check(
        r#""user":"a","metadata":{"session_id":"s"},"prompt_cache_key":"k","session_id":"s""#,
        "",
    );
    check(
        r#""tools":[{"type":"function","function":{"name":"f"}}]"#,
        "`tools` is `an array of 1`: tools are not there yet; leave the field out",
    );
    check(
        r#""response_format":{"type":"json_object"}"#,
        "`response_format` is `{\"type\":\"json_object\"}`: structured output is not there yet; leave the field out",
    );
    check(
        r#""logit_bias":{"5":1}"#,
        "`logit_bias` is `{\"5\":1}`: not there yet; leave it out",
    );
    check(
        r#""store":true"#,
        "`store` is `true`: nothing is stored here; leave it out",
    );
}

// RC-131: values of a budget that mean none are none, and any other is a refusal, never silence.
#[test]
fn rc_131_budget_values_are_none_or_refused() {
    for (value, refused) in [
        ("-1", false),
        ("null", false),
        ("0", false),
        ("1", false),
        ("-5", true),
        ("true", true),
        ("3.5", true),
        ("\"64\"", true),
    ] {
        let body = format!("{{{HI},\"thinking_token_budget\":{value}}}");
        assert_eq!(parse(body.as_bytes()).is_err(), refused, "{value}");
    }
}

#[test]
fn unknown_fields_are_refused_by_name() {
    check(r#""banana":1"#, "unknown field `banana`; leave it out");
    check(
        r#""maxtokens":null"#,
        "unknown field `maxtokens`; did you mean `max_tokens`?",
    );
}

#[test]
fn the_ends_of_an_answer_are_read() {
    assert_eq!(read(r#""stop":"x""#).stop_strings, ["x"]);
    assert_eq!(read(r#""stop":["x","y"]"#).stop_strings, ["x", "y"]);
    assert_eq!(read(r#""stop":null"#).stop_strings, Vec::<String>::new());
    assert_eq!(read(r#""stop_token_ids":[1,2]"#).stop_token_ids, [1, 2]);
    let stop = "expected a string or an array of at most 16 strings, each of 1 to 1024 bytes";
    check(r#""stop":"""#, &format!("`stop` is ``, {stop}"));
    check(
        r#""stop":[1]"#,
        &format!("`stop` is `an array of 1`, {stop}"),
    );
    check(
        r#""stop_token_ids":[-1]"#,
        "`stop_token_ids` is `an array of 1`, expected an array of at most 64 token ids",
    );
    assert_eq!(read(r#""max_tokens":5"#).max_tokens, Some(5));
    assert_eq!(
        read(r#""max_completion_tokens":6,"max_tokens":6"#).max_tokens,
        Some(6)
    );
    check(
        r#""max_tokens":0"#,
        "`max_tokens` is `0`, expected a whole number from 1 to 1073741824",
    );
    check(
        r#""max_tokens":5,"max_completion_tokens":6"#,
        "`max_tokens` is `5`, expected the same as `max_completion_tokens`, which is `6`; send one of them",
    );
    check(
        r#""max_tokens":5,"min_tokens":6"#,
        "`min_tokens` is `6`, expected a whole number from 0 to 5",
    );
}

#[test]
fn logprobs_need_both_fields_to_agree() {
    assert_eq!(
        read(r#""logprobs":true,"top_logprobs":20"#).logprobs,
        Some(20)
    );
    assert_eq!(read(r#""logprobs":true"#).logprobs, Some(0));
    assert_eq!(read(r#""logprobs":false,"top_logprobs":0"#).logprobs, None);
    check(
        r#""top_logprobs":2"#,
        "`top_logprobs` is `2`, expected 0 unless `logprobs` is true",
    );
    check(
        r#""logprobs":true,"top_logprobs":21"#,
        "`top_logprobs` is `21`, expected a whole number from 0 to 20",
    );
}

#[test]
fn stream_options_go_with_streams() {
    assert!(read(r#""stream":true,"stream_options":{"include_usage":true}"#).include_usage);
    check(
        r#""stream_options":{"include_usage":true}"#,
        "`stream_options` is `{\"include_usage\":true}`, expected no such field unless `stream` is true",
    );
    check(
        r#""stream":true,"stream_options":{"usage":true}"#,
        "unknown field `stream_options.usage`; did you mean `include_usage`?",
    );
}

#[test]
fn a_salt_follows_the_rules_of_vllm() {
    assert_eq!(
        read(r#""cache_salt":"tenant-1""#).cache_salt.as_deref(),
        Some("tenant-1")
    );
    for salt in ["", "a@b", "a/b", "a\\\\b"] {
        let body = format!("{{{HI},\"cache_salt\":\"{salt}\"}}");
        assert!(parse(body.as_bytes()).is_err(), "{salt}");
    }
    let long = "s".repeat(129);
    check(
        &format!("\"cache_salt\":\"{long}\""),
        &format!(
            "`cache_salt` is `{}…`, expected a string of at most 128 bytes",
            &long[..40]
        ),
    );
}

#[test]
fn messages_take_the_shape_that_templates_read() {
    check_content(
        r#"{"role":"user","content":"hi"}"#,
        &json!({"role":"user","content":"hi"}),
    );
    check_content(
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
        &json!({"role":"user","content":"a\nb"}),
    );
    check_content(
        r#"{"role":"developer","content":"be brief"}"#,
        &json!({"role":"system","content":"be brief"}),
    );
    check_content(
        r#"{"role":"assistant","content":null,"refusal":null,"annotations":[],"reasoning":"r"}"#,
        &json!({"role":"assistant","content":"","reasoning_content":"r","reasoning":"r"}),
    );
    let call = json!([{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]);
    check_content(
        &format!(r#"{{"role":"assistant","tool_calls":{call}}}"#),
        &json!({"role":"assistant","tool_calls":call,"content":""}),
    );
    check_content(
        r#"{"role":"tool","content":"4","tool_call_id":"c"}"#,
        &json!({"role":"tool","content":"4","tool_call_id":"c"}),
    );
}

#[test]
fn messages_that_cannot_be_read_are_named_by_place() {
    check_body(
        "{}",
        "`messages` is missing, expected an array of at least one message",
    );
    check_body(
        r#"{"messages":[]}"#,
        "`messages` is `an array of 0`, expected an array of at least one message",
    );
    check_body(
        r#"{"messages":"hi"}"#,
        "`messages` is `hi`, expected an array of at least one message",
    );
    check_body(
        r#"{"messages":[{"role":"user","content":"a"},{"role":"bot","content":1}]}"#,
        "`messages[1].role` is `bot`, expected one of `system`, `developer`, `user`, `assistant`, `tool`",
    );
    check_body(
        r#"{"messages":[{"role":"user"}]}"#,
        "`messages[0].content` is missing, expected a string or an array of text parts",
    );
    check_body(
        r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}"#,
        "`messages[0].content[0]` is a part of type `image_url`: this model reads text only",
    );
    check_body(
        r#"{"messages":[{"role":"user","content":"a","contents":"b"}]}"#,
        "unknown field `messages[0].contents`; did you mean `content`?",
    );
    check_body(
        r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"c"}]}]}"#,
        "`messages[0].tool_calls[0]` is `{\"id\":\"c\"}`, expected an object whose `function` has `name` and \
         `arguments`, both strings",
    );
    check_body(
        "[1]",
        "the body is not a JSON object: it is `an array of 1`",
    );
    check_body(
        "{",
        "the body is not a JSON object: EOF while parsing an object at line 1 column 1",
    );
}

#[test]
fn one_message_past_the_most_is_refused() {
    let message = r#"{"role":"user","content":"a"}"#;
    let many = vec![message; chat_wire::limits::MESSAGES_MAX + 1].join(",");
    check_body(
        &format!("{{\"messages\":[{many}]}}"),
        "`messages` has 16385 entries, expected at most 16384",
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        "[a-z]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let name = prop_oneof![
            Just("role"),
            Just("content"),
            Just("messages"),
            Just("stop"),
            Just("n"),
            Just("type"),
            Just("tools"),
            Just("stream_options"),
            Just("stream"),
            Just("text"),
            Just("tool_calls"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..5).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_a_request_or_a_list_of_problems(value in any_json()) {
        match parse(value.to_string().as_bytes()) {
            Ok(request) => prop_assert!(!request.messages.is_empty()),
            Err(Failure::Invalid(problems)) => prop_assert!(!problems.is_empty()),
            Err(Failure::BadJson(_)) => prop_assert!(!value.is_object()),
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn any_bytes_are_answered(body in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = parse(&body);
    }
}
