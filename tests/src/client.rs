//! A client that keeps its connection, for tests that send many requests.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpStream, task::JoinSet};

/// What a chat answer says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The replica that the gateway names in `x-pinion-replica`; empty where no gateway stands between.
    pub replica: String,
    /// The gateway's `x-pinion-reason`.
    pub reason: String,
    /// Prompt tokens, by the answer's usage.
    pub prompt_tokens: u64,
    /// Those of them that were cached.
    pub cached_tokens: u64,
}

/// One connection with one request on it at a time; opened anew when it has ended.
#[derive(Debug)]
pub struct Client {
    addr: SocketAddr,
    sender: Option<http1::SendRequest<Full<Bytes>>>,
    driver: JoinSet<()>,
}

impl Client {
    /// A client of `addr`, not connected yet.
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            sender: None,
            driver: JoinSet::new(),
        }
    }

    /// Sends one chat request and reads the whole answer.
    ///
    /// # Panics
    /// When the answer is no success, is not JSON or has no usage: no test here expects that.
    pub async fn chat(&mut self, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answered {
        let mut request = Request::post("/v1/chat/completions")
            .header("host", self.addr.to_string())
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::new(body.into()))
            .expect("headers that are valid");
        let response = self.send(request).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        let text = String::from_utf8_lossy(&body);
        assert_eq!(head.status, 200, "{text}");
        let answer: Value = serde_json::from_slice(&body).expect("an answer in JSON");
        let header = |name: &str| {
            let value = head.headers.get(name).and_then(|v| v.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let count = |value: &Value| {
            value
                .as_u64()
                .unwrap_or_else(|| panic!("no usage in {text}"))
        };
        let usage = &answer["usage"];
        Answered {
            replica: header("x-pinion-replica"),
            reason: header("x-pinion-reason"),
            prompt_tokens: count(&usage["prompt_tokens"]),
            cached_tokens: count(&usage["prompt_tokens_details"]["cached_tokens"]),
        }
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let mut kept = self.sender.take();
        if let Some(sender) = &mut kept
            && sender.ready().await.is_err()
        {
            kept = None;
        }
        let mut sender = match kept {
            Some(sender) => sender,
            None => self.connect().await,
        };
        let response = sender.send_request(request).await;
        self.sender = Some(sender);
        response.unwrap_or_else(|error| panic!("{}: {error}", self.addr))
    }

    async fn connect(&mut self) -> http1::SendRequest<Full<Bytes>> {
        let socket = TcpStream::connect(self.addr).await.expect("a listener");
        socket.set_nodelay(true).expect("a socket option");
        let handshake = http1::handshake(TokioIo::new(socket)).await;
        let (sender, connection) = handshake.expect("HTTP/1.1");
        self.driver.shutdown().await;
        self.driver.spawn(async move { drop(connection.await) });
        sender
    }
}
