//! The texts that the replicas answer.

use crate::{
    fleet::{BLOCK_TOKENS, KV_BLOCKS},
    knobs::Knobs,
    stream::Events,
};
use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{Either, Full};
use serde_json::{Value, json};

/// The only model that is served.
const MODEL: &str = "mock-model";
const CREATED: u64 = 1_700_000_000;
const ID: &str = "chatcmpl-mock0123456789";
const COMPLETION_TOKENS: u64 = 20;
const TEXT: &str = "A short answer of the mock engine, about twenty tokens long, so that it looks like a real one.";

/// A whole or a streamed answer.
pub(crate) type Reply = Response<Either<Full<Bytes>, Events>>;

/// Prompt tokens of a request and those of them that were in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) prompt: u64,
    pub(crate) cached: u64,
}

/// A JSON answer.
pub(crate) fn json_reply(status: StatusCode, body: &Value) -> Reply {
    whole(status, "application/json", body.to_string())
}

/// An OpenAI-style refusal.
pub(crate) fn refusal(status: StatusCode, message: &str) -> Reply {
    let error =
        json!({"message": message, "type": "invalid_request_error", "param": null, "code": null});
    json_reply(status, &json!({"error": error}))
}

/// `GET /v1/models`.
pub(crate) fn models() -> Reply {
    let model = json!({"id": MODEL, "object": "model", "created": CREATED, "owned_by": "mock", "max_model_len": 1 << 20});
    json_reply(StatusCode::OK, &json!({"object": "list", "data": [model]}))
}

/// `GET /health` of replica `index`.
pub(crate) fn health(index: usize) -> Reply {
    let body = json!({
        "status": "ok",
        "instance": format!("mock-{index}"),
        "model": MODEL,
        "prefix_cache": true,
        "kv_blocks": KV_BLOCKS,
        "block_tokens": BLOCK_TOKENS,
    });
    json_reply(StatusCode::OK, &body)
}

/// A whole chat answer.
pub(crate) fn chat(counts: Counts) -> Reply {
    // Written by hand: this is the mock's hot path, and a `Value` would cost more than all the rest of it.
    let body = format!(
        r#"{{"id":"{ID}","object":"chat.completion","created":{CREATED},"model":"{MODEL}","choices":[{{"index":0,"message":{{"role":"assistant","content":"{TEXT}"}},"logprobs":null,"finish_reason":"stop"}}],"usage":{}}}"#,
        usage(counts)
    );
    whole(StatusCode::OK, "application/json", body)
}

/// A streamed chat answer: role, `knobs.chunks - 2` pieces of text, finish, the usage if it was asked for, `[DONE]`.
pub(crate) fn chat_stream(knobs: Knobs, counts: Counts, with_usage: bool) -> Reply {
    let choice = |delta: &str, finish: &str| {
        event(
            &format!(r#"[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}]"#),
            "",
        )
    };
    let usage = with_usage.then(|| event("[]", &format!(r#","usage":{}"#, usage(counts))));
    let done = Bytes::from_static(b"data: [DONE]\n\n");
    let last = [Some(choice("{}", "\"stop\"")), usage, Some(done)]
        .into_iter()
        .flatten()
        .collect();
    let first = choice(r#"{"role":"assistant","content":""}"#, "null");
    let text = choice(r#"{"content":" token"}"#, "null");
    let events = Events::new(
        first,
        text,
        knobs.chunks.saturating_sub(2),
        last,
        knobs.delay,
    );
    let mut reply = Response::new(Either::Right(events));
    let headers = reply.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-cache"),
    );
    reply
}

fn whole(status: StatusCode, kind: &'static str, body: String) -> Reply {
    let mut reply = Response::new(Either::Left(Full::from(body)));
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    reply
}

fn event(choices: &str, more: &str) -> Bytes {
    Bytes::from(format!(
        "data: {{\"id\":\"{ID}\",\"object\":\"chat.completion.chunk\",\"created\":{CREATED},\"model\":\"{MODEL}\",\"choices\":{choices}{more}}}\n\n"
    ))
}

fn usage(counts: Counts) -> String {
    let Counts { prompt, cached } = counts;
    let total = prompt + COMPLETION_TOKENS;
    format!(
        r#"{{"prompt_tokens":{prompt},"completion_tokens":{COMPLETION_TOKENS},"total_tokens":{total},"prompt_tokens_details":{{"cached_tokens":{cached}}},"completion_tokens_details":{{"reasoning_tokens":0}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::{Counts, Knobs, Reply, chat, chat_stream};
    use http_body_util::BodyExt as _;
    use serde_json::Value;

    const COUNTS: Counts = Counts {
        prompt: 200,
        cached: 160,
    };

    fn text(reply: Reply) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let body = runtime.block_on(reply.into_body().collect()).unwrap();
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    }

    /// Checks a stream of `chunks` events: each is JSON, `[DONE]` ends it, and the usage is there when asked for.
    #[track_caller]
    fn check(chunks: u64, with_usage: bool, expect_events: usize) {
        let knobs = Knobs {
            chunks,
            ..Knobs::default()
        };
        let text = text(chat_stream(knobs, COUNTS, with_usage));
        let events: Vec<&str> = text
            .split_terminator("\n\n")
            .map(|event| &event["data: ".len()..])
            .collect();
        let (done, chunks) = events.split_last().unwrap();
        assert_eq!((*done, chunks.len()), ("[DONE]", expect_events));
        let chunks: Vec<Value> = chunks
            .iter()
            .map(|chunk| serde_json::from_str(chunk).unwrap())
            .collect();
        let finishes = chunks
            .iter()
            .filter(|chunk| chunk["choices"][0]["finish_reason"] == "stop")
            .count();
        let usages: Vec<_> = chunks
            .iter()
            .filter(|chunk| !chunk["usage"].is_null())
            .collect();
        assert_eq!((finishes, usages.len()), (1, usize::from(with_usage)));
        assert!(
            usages
                .iter()
                .all(|chunk| chunk["usage"]["prompt_tokens_details"]["cached_tokens"] == 160)
        );
    }

    #[test]
    fn a_stream_is_what_a_client_s_library_expects() {
        check(100, false, 100);
        check(100, true, 101);
        check(2, false, 2);
    }

    #[test]
    fn a_whole_answer_tells_its_cached_tokens() {
        let value: Value = serde_json::from_str(&text(chat(COUNTS))).unwrap();
        assert_eq!(
            value["usage"]["prompt_tokens_details"]["cached_tokens"],
            160
        );
        assert_eq!(value["usage"]["total_tokens"], 220);
    }
}
