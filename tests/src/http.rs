//! A plain HTTP/1.1 client: one connection per request, so that nothing is shared between two of them.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request, StatusCode, body::Incoming};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpStream, time::Instant};

/// Longest that any single answer may take on a busy two-core machine.
pub const ANSWER_SECONDS_MAX: u64 = 120;

/// A whole answer.
#[derive(Debug)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Reply {
    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("not JSON ({e}): {}", String::from_utf8_lossy(&self.body)))
    }

    /// A header's value, or the empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|v| v.to_str().ok())
            .unwrap_or("")
    }
}

/// One event of a stream, with the time since the request was sent.
#[derive(Clone, Debug)]
pub struct Event {
    /// Time since the request was sent.
    pub at: Duration,
    /// The event's field name, or `message`.
    pub name: String,
    /// Its data.
    pub data: String,
}

impl Event {
    /// The text of a chat chunk, or the empty string.
    pub fn content(&self) -> String {
        self.delta("content")
    }

    /// The reasoning of a chat chunk, or the empty string.
    pub fn reasoning(&self) -> String {
        self.delta("reasoning_content")
    }

    fn delta(&self, field: &str) -> String {
        serde_json::from_str::<Value>(&self.data)
            .ok()
            .and_then(|v| v["choices"][0]["delta"][field].as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

/// An answer that is still arriving.
#[derive(Debug)]
pub struct Stream {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    body: Incoming,
    sent: Instant,
    held: String,
}

impl Stream {
    /// The next event, or `None` at the end or where the connection broke.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.held.find("\n\n") {
                let raw: String = self.held.drain(..end + 2).collect();
                if let Some(event) = parse(&raw, self.sent.elapsed()) {
                    return Some(event);
                }
                continue;
            }
            let frame = limit(self.body.frame()).await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.held
                    .push_str(std::str::from_utf8(data).expect("whole characters in each write"));
            }
        }
    }

    /// All events up to the end.
    pub async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

fn parse(raw: &str, at: Duration) -> Option<Event> {
    let mut event = Event {
        at,
        name: "message".into(),
        data: String::new(),
    };
    let mut any = false;
    for line in raw.lines() {
        if let Some(data) = line.strip_prefix("data:") {
            event.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            any = true;
        } else if let Some(name) = line.strip_prefix("event:") {
            event.name = name.trim().to_owned();
        }
    }
    any.then_some(event)
}

async fn limit<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(ANSWER_SECONDS_MAX), work)
        .await
        .expect("an answer within the limit")
}

/// Sends a request and hands back its answer as it arrives; `body` of `None` is a GET.
///
/// # Errors
/// When nothing answers at `addr`.
pub async fn open(
    addr: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> Result<Stream, String> {
    let tcp = TcpStream::connect(addr)
        .await
        .map_err(|e| format!("connect {addr}: {e}"))?;
    tcp.set_nodelay(true).map_err(|e| e.to_string())?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(tcp))
        .await
        .map_err(|e| format!("handshake: {e}"))?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the connection ends with its one request; a test has no drain"
    )]
    tokio::spawn(connection);
    let mut request = Request::builder()
        .uri(path)
        .method(if body.is_some() { "POST" } else { "GET" })
        .header("host", addr.to_string());
    if body.is_some() {
        request = request.header("content-type", "application/json");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = body.map_or_else(Bytes::new, |b| Bytes::from(b.to_string()));
    let request = request.body(Full::new(body)).map_err(|e| e.to_string())?;
    let sent = Instant::now();
    let response = limit(sender.send_request(request))
        .await
        .map_err(|e| format!("request: {e}"))?;
    let (parts, body) = response.into_parts();
    Ok(Stream {
        status: parts.status,
        headers: parts.headers,
        body,
        sent,
        held: String::new(),
    })
}

/// POSTs a chat request and waits for the whole answer.
///
/// # Errors
/// When the connection fails or breaks.
pub async fn chat(
    addr: SocketAddr,
    headers: &[(&str, &str)],
    body: &Value,
) -> Result<Reply, String> {
    whole(open(addr, "/v1/chat/completions", headers, Some(body)).await?).await
}

/// GETs a path.
///
/// # Errors
/// When the connection fails or breaks.
pub async fn get(addr: SocketAddr, path: &str) -> Result<Reply, String> {
    whole(open(addr, path, &[], None).await?).await
}

async fn whole(stream: Stream) -> Result<Reply, String> {
    let body = limit(stream.body.collect())
        .await
        .map_err(|e| format!("body: {e}"))?
        .to_bytes();
    Ok(Reply {
        status: stream.status,
        headers: stream.headers,
        body,
    })
}
