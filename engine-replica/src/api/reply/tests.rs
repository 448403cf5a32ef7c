use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use expect_test::{Expect, expect};
use futures_util::{Stream, stream};
use http_body::Body;
use http_body_util::BodyExt;
use replica_core::answer_text::AnswerPart;
use tokio::time::Instant;

use super::*;
use crate::engine::job::{JobEvent, TokenInfo};
use crate::failure::Failure;
use crate::metrics::{Constants, Metrics};

/// Token `n` is the `n`th letter, token 26 the first byte of `é`.
struct Letters;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz\xc3";

impl TokenText for Letters {
    fn bytes(&self, token: u32) -> &[u8] {
        let at = token as usize;
        LETTERS.get(at..=at).unwrap_or_default()
    }
    fn is_special(&self, _: u32) -> bool {
        false
    }
}

fn metrics() -> Arc<Metrics> {
    let constants = Constants {
        model: "m",
        name: "r",
        instance: "i",
        device: "cpu",
        expert_load: None,
        prefix_cache: true,
    };
    Arc::new(Metrics::new(&constants).unwrap())
}

fn answer(logprobs: bool, include_usage: bool) -> Answer {
    Answer {
        id: "chatcmpl-1".into(),
        created: 7,
        model: "m".into(),
        prompt_tokens: 20,
        include_usage,
        logprobs,
        vocabulary: Arc::new(Letters),
    }
}

fn token(id: u32) -> TokenInfo {
    TokenInfo {
        id,
        logprob: Some(-0.5),
        top: vec![(id, -0.5), (26, f32::NEG_INFINITY)],
    }
}

fn delta(text: &str, ids: &[u32]) -> JobEvent {
    JobEvent::Delta {
        part: AnswerPart::Content,
        text: text.into(),
        tokens: ids.iter().map(|&id| token(id)).collect(),
    }
}

fn finished(reason: FinishReason) -> JobEvent {
    JobEvent::Finished {
        reason,
        completion_tokens: 3,
        reasoning_tokens: 0,
    }
}

/// An answer of two letters, the second token of which made no text at once.
fn script() -> Vec<JobEvent> {
    vec![
        JobEvent::Admitted { cached_tokens: 16 },
        delta("a", &[0]),
        delta("", &[26]),
        delta("b", &[1]),
        finished(FinishReason::Stop),
    ]
}

async fn text_of<B: Body<Data = Bytes, Error = Infallible>>(body: B) -> String {
    let bytes = body.collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn check_stream(answer: Answer, events: Vec<JobEvent>, expect: Expect) {
    let timer = Timer::new(metrics(), Instant::now());
    expect.assert_eq(&text_of(StreamBody::new(answer, timer, stream::iter(events))).await);
}

async fn check_whole(answer: Answer, events: Vec<JobEvent>, expect: Expect) {
    let timer = Timer::new(metrics(), Instant::now());
    let body = whole(&answer, timer, stream::iter(events)).await.unwrap();
    expect.assert_eq(std::str::from_utf8(&body).unwrap());
}

#[tokio::test]
async fn a_stream_is_role_text_reason_usage_done() {
    check_stream(answer(false, true), script(), expect![[r#"
        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}

        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null}]}

        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"b"},"logprobs":null,"finish_reason":null}]}

        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}

        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":0}}}

        data: [DONE]

    "#]]).await;
}

#[tokio::test]
async fn a_stream_without_usage_asked_has_none() {
    let events = vec![
        JobEvent::Admitted { cached_tokens: 0 },
        finished(FinishReason::Length),
    ];
    check_stream(answer(false, false), events, expect![[r#"
        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}

        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]}

        data: [DONE]

    "#]]).await;
}

#[tokio::test]
async fn log_probabilities_cover_every_token_also_those_without_text() {
    let events = vec![
        JobEvent::Admitted { cached_tokens: 0 },
        delta("", &[26]),
        finished(FinishReason::Stop),
    ];
    check_stream(answer(true, false), events, expect![[r#"
        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}

        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":""},"logprobs":{"content":[{"token":"�","logprob":-0.5,"bytes":[195],"top_logprobs":[{"token":"�","logprob":-0.5,"bytes":[195]},{"token":"�","logprob":-9999.0,"bytes":[195]}]}]},"finish_reason":null}]}

        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}

        data: [DONE]

    "#]]).await;
}

// RC-115, on this side: an answer that breaks off must not pass for whole.
#[tokio::test]
async fn rc_115_a_broken_answer_ends_in_an_error_and_no_done() {
    let events = vec![
        JobEvent::Admitted { cached_tokens: 0 },
        delta("a", &[0]),
        JobEvent::Failed {
            message: "a step failed".into(),
        },
    ];
    check_stream(answer(false, true), events, expect![[r#"
        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}

        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null}]}

        data: {"error":{"message":"the engine failed: a step failed","type":"server_error","param":null,"code":"engine_failed"}}

    "#]]).await;
    let silent = vec![JobEvent::Admitted { cached_tokens: 0 }];
    check_stream(answer(false, true), silent, expect![[r#"
        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}

        data: {"error":{"message":"the engine failed: it stopped before the answer had ended; send the request again","type":"server_error","param":null,"code":"engine_failed"}}

    "#]]).await;
}

#[tokio::test]
async fn a_whole_answer_always_says_what_was_cached_and_what_was_reasoning() {
    check_whole(answer(false, false), script(), expect![[r#"{"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ab"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":0}}}"#]]).await;
}

#[tokio::test]
async fn a_whole_answer_has_one_log_probability_a_token() {
    let timer = Timer::new(metrics(), Instant::now());
    let body = whole(&answer(true, false), timer, stream::iter(script()))
        .await
        .unwrap();
    let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let content = value["choices"][0]["logprobs"]["content"]
        .as_array()
        .unwrap();
    assert_eq!(content.len(), 3);
    assert_eq!(content[1]["bytes"][0], 0xc3);
    assert_eq!(content[1]["token"], "\u{fffd}");
    assert_eq!(content[1]["top_logprobs"][1]["logprob"], -9999.0);
}

fn thought(text: &str, ids: &[u32]) -> JobEvent {
    JobEvent::Delta {
        part: AnswerPart::Reasoning,
        text: text.into(),
        tokens: ids.iter().map(|&id| token(id)).collect(),
    }
}

fn thinking_script(answer: Option<JobEvent>) -> Vec<JobEvent> {
    let mut events = vec![
        JobEvent::Admitted { cached_tokens: 16 },
        thought("", &[4]),
        thought("c", &[2]),
        thought("", &[5]),
    ];
    events.extend(answer);
    events.push(JobEvent::Finished {
        reason: FinishReason::Stop,
        completion_tokens: 4,
        reasoning_tokens: 1,
    });
    events
}

#[tokio::test]
async fn reasoning_has_a_field_and_a_count_of_its_own() {
    let said = Some(delta("a", &[0]));
    check_whole(answer(false, false), thinking_script(said.clone()), expect![[r#"{"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a","reasoning_content":"c"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":4,"total_tokens":24,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":1}}}"#]]).await;
    check_stream(answer(false, true), thinking_script(said), expect![[r#"
        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}

        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"c"},"logprobs":null,"finish_reason":null}]}

        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null}]}

        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}

        data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":4,"total_tokens":24,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":1}}}

        data: [DONE]

    "#]]).await;
}

#[tokio::test]
async fn an_answer_that_ends_in_its_reasoning_has_null_for_content() {
    check_whole(answer(false, false), thinking_script(None), expect![[r#"{"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning_content":"c"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":4,"total_tokens":24,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":1}}}"#]]).await;
}

#[tokio::test]
async fn log_probabilities_cover_reasoning_and_its_marks() {
    let said = Some(delta("a", &[0]));
    let timer = Timer::new(metrics(), Instant::now());
    let events = stream::iter(thinking_script(said.clone()));
    let body = whole(&answer(true, false), timer, events).await.unwrap();
    let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let told = value["choices"][0]["logprobs"]["content"]
        .as_array()
        .unwrap();
    let tokens: Vec<_> = told
        .iter()
        .map(|entry| entry["token"].as_str().unwrap())
        .collect();
    assert_eq!(tokens, ["e", "c", "f", "a"]);

    // In a stream each token stands in a chunk of the part that it belongs to.
    let timer = Timer::new(metrics(), Instant::now());
    let events = stream::iter(thinking_script(said));
    let text = text_of(StreamBody::new(answer(true, false), timer, events)).await;
    let parts: Vec<_> = text
        .split("\n\n")
        .filter(|event| event.contains("top_logprobs"))
        .map(|event| event.contains("\"delta\":{\"reasoning_content\""))
        .collect();
    assert_eq!(parts, [true, true, true, false]);
}

#[tokio::test]
async fn a_whole_answer_that_fails_is_a_failure() {
    let timer = Timer::new(metrics(), Instant::now());
    let events = vec![
        delta("a", &[0]),
        JobEvent::Failed {
            message: "a step failed".into(),
        },
    ];
    let got = whole(&answer(false, false), timer, stream::iter(events)).await;
    assert_eq!(got, Err(Failure::Engine("a step failed".into())));
}

/// Each event after its own wait.
struct Timed {
    script: VecDeque<(Duration, JobEvent)>,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Timed {
    fn new(script: impl IntoIterator<Item = (u64, JobEvent)>) -> Timed {
        let in_ms = |(ms, event)| (Duration::from_millis(ms), event);
        Timed {
            script: script.into_iter().map(in_ms).collect(),
            sleep: None,
        }
    }
}

impl Stream for Timed {
    type Item = JobEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<JobEvent>> {
        let Some((wait, _)) = self.script.front() else {
            return Poll::Ready(None);
        };
        let wait = *wait;
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(wait)));
        std::task::ready!(sleep.as_mut().poll(cx));
        self.sleep = None;
        Poll::Ready(self.script.pop_front().map(|(_, event)| event))
    }
}

#[tokio::test(start_paused = true)]
async fn rc_124_a_silent_stream_pings_until_its_first_token() {
    let events = Timed::new([
        (31_000, JobEvent::Admitted { cached_tokens: 0 }),
        (1_000, finished(FinishReason::Stop)),
    ]);
    let timer = Timer::new(metrics(), Instant::now());
    let text = text_of(StreamBody::new(answer(false, false), timer, events)).await;
    assert!(text.starts_with(": ping\n\n: ping\n\ndata: {"), "{text}");
    assert_eq!(text.matches(": ping").count(), 2);
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
}

fn sum_and_count(series: &prometheus::Histogram) -> (f64, u64) {
    (series.get_sample_sum(), series.get_sample_count())
}

fn ended(metrics: &Metrics, reason: &str) -> bool {
    let text = metrics
        .render(&crate::engine::stats::EngineStats::default())
        .unwrap();
    text.contains(&format!(
        "finished_reason=\"{reason}\",model_name=\"m\"}} 1\n"
    ))
}

// RC-147: the role chunk is no token. RC-150: tokens are counted, not deltas. RC-153: a token without text is a token.
#[tokio::test(start_paused = true)]
async fn rc_147_rc_150_rc_153_times_are_of_tokens() {
    let metrics = metrics();
    let events = Timed::new([
        (50, JobEvent::Admitted { cached_tokens: 0 }),
        (350, delta("a", &[0])),
        (20, delta("", &[26])),
        (40, delta("bc", &[1, 2])),
        (20, finished(FinishReason::Stop)),
    ]);
    let timer = Timer::new(Arc::clone(&metrics), Instant::now());
    text_of(StreamBody::new(answer(false, false), timer, events)).await;
    let (ttft, first) = sum_and_count(&metrics.time_to_first_token);
    assert!((ttft - 0.4).abs() < 0.002 && first == 1, "{ttft} {first}");
    let (gaps, count) = sum_and_count(&metrics.inter_token);
    assert!((gaps - 0.06).abs() < 0.004 && count == 3, "{gaps} {count}");
    let (whole, count) = sum_and_count(&metrics.request_time);
    assert!(
        (whole - 0.48).abs() < 0.004 && count == 1,
        "{whole} {count}"
    );
    assert!(ended(&metrics, "stop"));
}

// RC-151: every ending is counted once, whatever it is.
#[tokio::test]
async fn rc_151_each_ending_has_its_own_count() {
    let unfinished = || vec![JobEvent::Admitted { cached_tokens: 0 }, delta("a", &[0])];
    let dropped = metrics();
    let timer = Timer::new(Arc::clone(&dropped), Instant::now());
    let mut body = StreamBody::new(answer(false, false), timer, stream::iter(unfinished()));
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert!(ended(&dropped, "abort"));

    let never_polled = metrics();
    let timer = Timer::new(Arc::clone(&never_polled), Instant::now());
    drop(StreamBody::new(
        answer(false, false),
        timer,
        stream::iter(unfinished()),
    ));
    assert!(ended(&never_polled, "abort"));

    let failed = metrics();
    let timer = Timer::new(Arc::clone(&failed), Instant::now());
    text_of(StreamBody::new(
        answer(false, false),
        timer,
        stream::iter(unfinished()),
    ))
    .await;
    assert!(ended(&failed, "error"));
    assert!(!ended(&failed, "abort"));
}
