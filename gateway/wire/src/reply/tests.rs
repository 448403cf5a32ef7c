use expect_test::{Expect, expect};

use super::*;
use crate::error::ErrorBody;

#[track_caller]
fn check(written: &Bytes, expect: &Expect) {
    expect.assert_eq(std::str::from_utf8(written).unwrap());
}

fn chunk(choices: Vec<ChunkChoice<'static>>, usage: Option<Usage>) -> Bytes {
    let chunk = ChatCompletionChunk {
        id: "chatcmpl-1",
        object: ChatCompletionChunk::OBJECT,
        created: 7,
        model: "m",
        system_fingerprint: None,
        choices,
        usage,
    };
    chunk.to_event()
}

fn choice(delta: Delta<'static>, finish_reason: Option<&'static str>) -> Vec<ChunkChoice<'static>> {
    vec![ChunkChoice {
        index: 0,
        delta,
        logprobs: None,
        finish_reason,
    }]
}

#[test]
fn chunks_are_written_as_official_clients_read_them() {
    let first = Delta {
        role: Some("assistant"),
        content: Some(""),
        ..Delta::default()
    };
    check(
        &chunk(choice(first, None), None),
        &expect![[r#"
        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}

    "#]],
    );
    let last = choice(Delta::default(), Some("stop"));
    check(
        &chunk(last, None),
        &expect![[r#"
        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}

    "#]],
    );
    check(
        &chunk(Vec::new(), Some(Usage::new(9, 8, 2, 0))),
        &expect![[r#"
        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":0}}}

    "#]],
    );
}

#[test]
fn a_piece_of_a_tool_call_says_only_what_is_new() {
    let call = |id, kind, name, arguments| ToolCall {
        index: Some(0),
        id,
        kind,
        function: FunctionCall { name, arguments },
    };
    let piece = |call| {
        choice(
            Delta {
                tool_calls: vec![call],
                ..Delta::default()
            },
            None,
        )
    };
    check(
        &chunk(
            piece(call(Some("c1"), Some("function"), Some("f"), "")),
            None,
        ),
        &expect![[r#"
        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]},"logprobs":null,"finish_reason":null}]}

    "#]],
    );
    check(
        &chunk(piece(call(None, None, None, "{}")), None),
        &expect![[r#"
        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"logprobs":null,"finish_reason":null}]}

    "#]],
    );
}

#[test]
fn a_whole_answer_has_content_and_usage_always() {
    let top = TopLogprob {
        token: "A".to_owned(),
        logprob: -0.5,
        bytes: vec![65],
    };
    let token = TokenLogprob {
        token: "A".to_owned(),
        logprob: -0.5,
        bytes: vec![65],
        top_logprobs: vec![top],
    };
    let answer = |message, logprobs| ChatCompletion {
        id: "chatcmpl-1",
        object: ChatCompletion::OBJECT,
        created: 7,
        model: "m",
        system_fingerprint: Some("fp"),
        choices: vec![Choice {
            index: 0,
            message,
            logprobs,
            finish_reason: "stop",
        }],
        usage: Usage::new(9, 0, 2, 1),
    };
    let message = Message {
        role: "assistant",
        content: None,
        reasoning_content: Some("hm"),
        tool_calls: Vec::new(),
    };
    check(
        &answer(
            message,
            Some(Logprobs {
                content: vec![token],
            }),
        )
        .to_json(),
        &expect![[
            r#"{"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning_content":"hm"},"logprobs":{"content":[{"token":"A","logprob":-0.5,"bytes":[65],"top_logprobs":[{"token":"A","logprob":-0.5,"bytes":[65]}]}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":1}}}"#
        ]],
    );
}

#[test]
fn errors_and_model_lists_have_openais_shape() {
    let error = ErrorBody {
        message: "no model `x`",
        kind: "invalid_request_error",
        param: Some("model"),
        code: Some("model_not_found"),
    };
    check(
        &error.to_json(),
        &expect![[
            r#"{"error":{"message":"no model `x`","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#
        ]],
    );
    let error = ErrorBody {
        param: None,
        code: None,
        ..error
    };
    check(
        &error.to_event(),
        &expect![[r#"
        data: {"error":{"message":"no model `x`","type":"invalid_request_error","param":null,"code":null}}

    "#]],
    );
    let model = Model {
        id: "m",
        object: Model::OBJECT,
        created: 7,
        owned_by: "pinion",
        max_model_len: None,
    };
    let list = ModelList {
        object: ModelList::OBJECT,
        data: vec![model],
    };
    check(
        &list.to_json(),
        &expect![[
            r#"{"object":"list","data":[{"id":"m","object":"model","created":7,"owned_by":"pinion"}]}"#
        ]],
    );
}
