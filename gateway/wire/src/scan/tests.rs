use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn paths(texts: &[&str]) -> Vec<JsonPath> {
    texts
        .iter()
        .map(|text| JsonPath::parse(text).unwrap())
        .collect()
}

/// What the scan says of `body`, one line per thing, or the error.
fn said(body: &str, wanted: &[&str]) -> String {
    let scan = match chat(body.as_bytes(), &paths(wanted)) {
        Ok(scan) => scan,
        Err(error) => return error.to_string(),
    };
    let mut lines = Vec::new();
    if let Some(model) = &scan.model {
        lines.push(format!("model={model}"));
    }
    if scan.stream {
        lines.push("stream".to_owned());
    }
    for message in &scan.messages {
        lines.push(format!(
            "{:?}={}",
            message.role,
            &body[message.span.clone()]
        ));
    }
    if let Some(tools) = &scan.tools {
        lines.push(format!("tools={}", &body[tools.clone()]));
    }
    if let Some(options) = &scan.stream_options {
        lines.push(format!(
            "{}/{:?}",
            &body[options.span.clone()],
            options.include_usage
        ));
    }
    for (name, number) in [("max_tokens", scan.max_tokens), ("n", scan.n)] {
        lines.extend(number.map(|number| format!("{name}={number}")));
    }
    lines.extend(scan.cache_salt.iter().map(|salt| format!("salt={salt}")));
    for (path, text) in wanted.iter().zip(&scan.strings) {
        lines.extend(text.as_ref().map(|text| format!("{path}={text}")));
    }
    assert_eq!(&body[scan.close..=scan.close], "}");
    lines.join("; ")
}

#[track_caller]
fn check(body: &str, wanted: &[&str], expect: &str) {
    assert_eq!(said(body, wanted), expect, "{body}");
}

#[test]
fn fields_are_found_with_their_places() {
    check("{}", &[], "");
    check(
        r#" { "model" : "a\u002fb" , "stream" : true } "#,
        &[],
        "model=a/b; stream",
    );
    check(
        r#"{"model":null,"stream":null,"tools":null,"cache_salt":null}"#,
        &[],
        "",
    );
    check(
        r#"{"messages":[ {"role":"system","content":"x"} ,{"content":[{"type":"text","text":"}"}],"role":"user"}]}"#,
        &[],
        r#"System={"role":"system","content":"x"}; User={"content":[{"type":"text","text":"}"}],"role":"user"}"#,
    );
    check(
        r#"{"messages":[{"role":"developer"},{"role":"tool"},{"role":"function"},{"role":"assistant"},{"role":7},{}]}"#,
        &[],
        r#"Developer={"role":"developer"}; Tool={"role":"tool"}; Function={"role":"function"}; Assistant={"role":"assistant"}; Other={"role":7}; Other={}"#,
    );
    check(
        r#"{"tools":[{"a":1}],"cache_salt":"s"}"#,
        &[],
        r#"tools=[{"a":1}]; salt=s"#,
    );
    check(r#"{"max_tokens":5}"#, &[], "max_tokens=5");
    check(
        r#"{"max_tokens":5,"max_completion_tokens":6,"n":2}"#,
        &[],
        "max_tokens=6; n=2",
    );
    check(r#"{"max_tokens":-1,"n":1.5}"#, &[], "");
    check(r#"{"stream_options":null}"#, &[], "null/None");
    check(r#"{"stream_options":{ }}"#, &[], "{ }/None");
    check(
        r#"{"stream_options":{"a":1,"include_usage": false}}"#,
        &[],
        r#"{"a":1,"include_usage": false}/Some(false)"#,
    );
    check(r#"{"mod\u0065l":"m"}"#, &[], "model=m");
}

#[test]
fn wanted_strings_are_found_by_path_and_nowhere_else() {
    let wanted = ["metadata.session_id", "session_id", "user"];
    check(r#"{"user":"u\n"}"#, &wanted, "user=u\n");
    check(
        r#"{"metadata":{"x":{"session_id":"no"},"session_id":"yes"}}"#,
        &wanted,
        "metadata.session_id=yes",
    );
    // A name inside a prompt is not a field, and a number is no name.
    check(
        r#"{"messages":[{"role":"user","content":"\"user\": \"thief\"","user":"t"}],"session_id":7}"#,
        &wanted,
        r#"User={"role":"user","content":"\"user\": \"thief\"","user":"t"}"#,
    );
    check(
        r#"{"metadata":"session_id","metadata2":{"session_id":"x"}}"#,
        &wanted,
        "",
    );
    // Fields that the scan reads itself can be asked for too, and one path may begin another.
    check(
        r#"{"model":"m","stream_options":{"tag":"t"},"a":{"b":"deep"}}"#,
        &["model", "stream_options.tag", "a", "a.b"],
        r#"model=m; {"tag":"t"}/None; model=m; stream_options.tag=t; a.b=deep"#,
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    check("", &[], "at byte 0: expected an object");
    check("[]", &[], "at byte 0: expected an object");
    check(
        "{} x",
        &[],
        "at byte 3: expected nothing after the closing brace",
    );
    check(
        r#"{"model":7}"#,
        &[],
        "at byte 9, in `model`: expected a string",
    );
    check(
        r#"{"stream":"yes"}"#,
        &[],
        "at byte 10, in `stream`: expected `true` or `false`",
    );
    check(
        r#"{"messages":{}}"#,
        &[],
        "at byte 12, in `messages`: expected an array of messages",
    );
    check(
        r#"{"messages":["hi"]}"#,
        &[],
        "at byte 13, in `messages`: expected a message object",
    );
    check(
        r#"{"stream_options":[]}"#,
        &[],
        "at byte 18, in `stream_options`: expected an object",
    );
    check(
        r#"{"temperature":.5}"#,
        &[],
        "at byte 15: expected a JSON value",
    );
    check(
        r#"{"model":"\ud800"}"#,
        &[],
        "at byte 10, in `model`: expected an escape that means a character",
    );
    let error = chat(b"{\"a\":\"\xff\"}", &[]).unwrap_err();
    assert_eq!(error.to_string(), "at byte 6: expected UTF-8 text");
}

#[test]
fn a_deciding_field_may_stand_only_once() {
    let once = "expected the field once; remove its repetition";
    check(
        r#"{"model":"a","model":"b"}"#,
        &[],
        &format!("at byte 14, in `model`: {once}"),
    );
    check(
        r#"{"model":"a","m\u006fdel":"b"}"#,
        &[],
        &format!("at byte 14, in `model`: {once}"),
    );
    check(
        r#"{"user":"a","user":"b"}"#,
        &["user"],
        &format!("at byte 20: {once}"),
    );
    check(
        r#"{"stream_options":{"include_usage":true,"include_usage":false}}"#,
        &[],
        &format!("at byte 41, in `stream_options`: {once}"),
    );
    check(r#"{"temperature":1,"temperature":2}"#, &[], "");
}

#[test]
fn messages_are_bounded() {
    let body = |count: usize| format!(r#"{{"messages":[{}]}}"#, vec!["{}"; count].join(","));
    let at_most = chat(body(MESSAGES_MAX).as_bytes(), &[]).unwrap();
    assert_eq!(at_most.messages.len(), MESSAGES_MAX);
    let error = chat(body(MESSAGES_MAX + 1).as_bytes(), &[]).unwrap_err();
    assert_eq!(error.problem, ScanProblem::TooMany(MESSAGES_MAX));
    assert_eq!(error.field, Some("messages"));
}

fn text() -> impl Strategy<Value = String> {
    "[a\"\\\\\n{}é茶]{0,6}"
}

fn message() -> impl Strategy<Value = Value> {
    let role = prop::sample::select(vec!["system", "user", "assistant", "tool"]);
    (role, text()).prop_map(|(role, text)| json!({"content": text, "role": role}))
}

prop_compose! {
    fn request()(
        model in text(),
        stream in any::<bool>(),
        session in prop::option::of(text()),
        messages in prop::collection::vec(message(), 0..4),
        tools in prop::option::of(text()),
        usage in prop::option::of(any::<bool>()),
        other in text(),
    )(
        fields in Just(json!({
            "model": model,
            "stream": stream,
            "metadata": {"other": [other], "session_id": session},
            "messages": messages,
            "tools": tools.map(|text| json!([text])),
            "stream_options": usage.map(|usage| json!({"include_usage": usage})),
            (other): null,
        }).as_object().unwrap().clone().into_iter().collect::<Vec<_>>()).prop_shuffle(),
    ) -> Value {
        Value::Object(fields.into_iter().collect())
    }
}

proptest! {
    #[test]
    fn the_scan_agrees_with_serde_json(request in request(), pretty in any::<bool>()) {
        let body = if pretty {
            serde_json::to_string_pretty(&request).unwrap()
        } else {
            request.to_string()
        };
        let scan = chat(body.as_bytes(), &paths(&["metadata.session_id"])).unwrap();
        prop_assert_eq!(scan.model.as_deref(), request["model"].as_str());
        prop_assert_eq!(Some(scan.stream), request["stream"].as_bool());
        prop_assert_eq!(scan.strings[0].as_deref(), request["metadata"]["session_id"].as_str());
        let part = |span: &Range<usize>| serde_json::from_str::<Value>(&body[span.clone()]).unwrap();
        let messages: Vec<Value> = scan.messages.iter().map(|m| part(&m.span)).collect();
        prop_assert_eq!(&Value::Array(messages), &request["messages"]);
        for message in &scan.messages {
            let role = part(&message.span)["role"].as_str().unwrap().to_owned();
            prop_assert_eq!(message.role, Role::from_wire(role.as_bytes()));
        }
        prop_assert_eq!(&scan.tools.as_ref().map_or(Value::Null, part), &request["tools"]);
        let options = scan.stream_options.unwrap();
        prop_assert_eq!(options.include_usage, request["stream_options"]["include_usage"].as_bool());
        prop_assert_eq!(&part(&options.span), &request["stream_options"]);
        prop_assert_eq!(body[scan.close..].trim_end(), "}");
    }

    #[test]
    fn a_damaged_request_never_panics(
        request in request(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut body = request.to_string().into_bytes();
        for (place, byte) in damage {
            let place = place.index(body.len());
            body[place] = byte;
        }
        let _ = chat(&body, &paths(&["metadata.session_id", "model"]));
    }
}
