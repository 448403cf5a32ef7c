//! The first question, asked through the gateway's own front door in both lanes, so that its answers can be shown.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The built-in model answers in a tenth of a second; on a machine where it does not, nobody waits for it.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 1 << 16;
/// Characters of an answer that are shown.
const SHOWN_CHARS_MAX: usize = 60;

/// What the built-in model was taught, and cannot do in its head.
const QUESTION: &str = "What is 47*36?";

/// The request as a person would paste it.
pub(super) fn body(model: &str, thinks: bool) -> String {
    let lane = if thinks {
        ""
    } else {
        r#","chat_template_kwargs":{"enable_thinking":false}"#
    };
    format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"{QUESTION}"}}]{lane}}}"#)
}

/// What was answered, in words that follow a curl line.
pub(super) async fn ask(gateway: SocketAddr, body: String) -> String {
    let answer = match timeout(ANSWER_LIMIT, send(gateway, body)).await {
        Ok(Ok(bytes)) => words(&bytes),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("none within {} s", ANSWER_LIMIT.as_secs())),
    };
    answer.unwrap_or_else(|why| format!("no answer: {why}"))
}

async fn send(
    gateway: SocketAddr,
    body: String,
) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(gateway).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::post("/v1/chat/completions")
        .header(header::HOST, gateway.to_string())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONNECTION, "close")
        .body(Full::new(Bytes::from(body)))?;
    let answer = async {
        let response = sender.send_request(request).await?;
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        Ok(body.collect().await?.to_bytes())
    };
    // The connection is worked off beside the answer, and with the answer both end.
    tokio::select! {
        answer = answer => answer,
        Err(error) = connection => Err(error.into()),
    }
}

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
    usage: Usage,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    completion_tokens_details: Details,
}

#[derive(Deserialize)]
struct Details {
    reasoning_tokens: u64,
}

fn words(bytes: &[u8]) -> Result<String, String> {
    let answer: Answer = serde_json::from_slice(bytes)
        .map_err(|_| format!("`{}`", shown(&String::from_utf8_lossy(bytes))))?;
    let content = answer.choices.into_iter().next();
    let content = content.and_then(|choice| choice.message.content);
    let content = shown(&content.unwrap_or_default());
    Ok(
        match answer.usage.completion_tokens_details.reasoning_tokens {
            0 => format!("answers `{content}` at once"),
            count => format!("answers `{content}` after {count} tokens of reasoning"),
        },
    )
}

fn shown(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, expect: Result<&str, &str>) {
        let got = words(answer.as_bytes());
        assert_eq!(got.as_deref().map_err(String::as_str), expect);
    }

    #[test]
    fn an_answer_is_told_in_words() {
        check(
            r#"{"choices":[{"message":{"content":"1692","reasoning_content":"47*6"}}],
                "usage":{"completion_tokens_details":{"reasoning_tokens":116}}}"#,
            Ok("answers `1692` after 116 tokens of reasoning"),
        );
        check(
            r#"{"choices":[{"message":{"content":"14\n12"}}],"usage":{"completion_tokens_details":{"reasoning_tokens":0}}}"#,
            Ok("answers `14 12` at once"),
        );
        check(
            r#"{"error":{"message":"no"}}"#,
            Err(r#"`{"error":{"message":"no"}}`"#),
        );
    }

    #[test]
    fn what_is_shown_to_be_pasted_is_what_is_sent() {
        let thinks: serde_json::Value = serde_json::from_str(&body("m", true)).unwrap();
        let at_once: serde_json::Value = serde_json::from_str(&body("m", false)).unwrap();
        assert_eq!(thinks["messages"], at_once["messages"]);
        assert_eq!(thinks["chat_template_kwargs"], serde_json::Value::Null);
        assert_eq!(at_once["chat_template_kwargs"]["enable_thinking"], false);
    }
}
