//! One keep-alive connection that sends one request at a time.

use crate::{
    answer::{AnswerScan, Usage},
    body::Parts,
    tally::Tally,
};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::{cell::RefCell, io, net::SocketAddr, time::Duration};
use tokio::{net::TcpStream, time::Instant};

/// Bytes that hyper may gather before it writes; large bodies go out in few writes, as from a real client.
const WRITE_BUFFER_BYTES: usize = 512 * 1_024;
const PATH: &str = "/v1/chat/completions";

/// Why a request gave no proper answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("connect to {target}: {error}")]
    Connect {
        target: SocketAddr,
        error: io::Error,
    },
    #[error("the connection to {target} is not HTTP: {error}")]
    Handshake {
        target: SocketAddr,
        error: hyper::Error,
    },
    #[error("the request cannot be written: {0}")]
    Write(#[from] http::Error),
    #[error("no response: {0}")]
    Response(hyper::Error),
    #[error("the body broke off: {0}")]
    Body(hyper::Error),
    #[error("status {status}: {text}")]
    Status { status: StatusCode, text: String },
    #[error("the answer ended early, after {bytes} bytes")]
    Short { bytes: u64 },
}

/// What a proper answer took.
pub(crate) struct Answer {
    /// From the request's first byte to the answer's last.
    pub(crate) latency: Duration,
    /// From the request's first byte to the first byte of the answer's body, or of its head when not streamed.
    pub(crate) first_byte: Duration,
    /// Bytes of the answer's body.
    pub(crate) bytes: u64,
    /// The usage in it.
    pub(crate) usage: Option<Usage>,
}

/// What is to be sent.
pub(crate) struct Outgoing<'a> {
    /// The request's body.
    pub(crate) body: Parts,
    /// The session header's value, if it is to be sent.
    pub(crate) session: Option<&'a str>,
    /// Whether the answer will be a stream.
    pub(crate) stream: bool,
}

/// A connection that opens when it is first needed and again after it broke.
pub(crate) struct Connection {
    target: SocketAddr,
    sender: Option<http1::SendRequest<Parts>>,
    opened: bool,
}

impl Connection {
    /// A connection to `target`, not open yet.
    pub(crate) fn new(target: SocketAddr) -> Self {
        Self {
            target,
            sender: None,
            opened: false,
        }
    }

    /// Sends one request and reads the whole answer. Events that arrive are counted in `tally` one by one.
    pub(crate) async fn send(
        &mut self,
        outgoing: Outgoing<'_>,
        tally: &RefCell<Tally>,
    ) -> Result<Answer, RequestError> {
        let mut sender = self.ready(tally).await?;
        let answer = exchange(&mut sender, self.target, outgoing, tally).await;
        // A broken exchange leaves the connection in an unknown state; a bad status does not.
        if !matches!(
            answer,
            Err(RequestError::Response(_) | RequestError::Body(_))
        ) {
            self.sender = Some(sender);
        }
        answer
    }

    async fn ready(
        &mut self,
        tally: &RefCell<Tally>,
    ) -> Result<http1::SendRequest<Parts>, RequestError> {
        if let Some(mut sender) = self.sender.take()
            && sender.ready().await.is_ok()
        {
            return Ok(sender);
        }
        if self.opened {
            tally.borrow_mut().reconnected();
        }
        let target = self.target;
        let connect = async {
            let socket = TcpStream::connect(target).await?;
            socket.set_nodelay(true)?;
            Ok(socket)
        };
        let socket = connect
            .await
            .map_err(|error| RequestError::Connect { target, error })?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(WRITE_BUFFER_BYTES)
            .handshake(TokioIo::new(socket))
            .await
            .map_err(|error| RequestError::Handshake { target, error })?;
        // Its end shows at the sender, which is where it matters.
        tokio::task::spawn_local(async move { drop(connection.await) });
        self.opened = true;
        Ok(sender)
    }
}

async fn exchange(
    sender: &mut http1::SendRequest<Parts>,
    target: SocketAddr,
    outgoing: Outgoing<'_>,
    tally: &RefCell<Tally>,
) -> Result<Answer, RequestError> {
    let mut request = Request::post(PATH)
        .header(header::HOST, target.to_string())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, "Bearer sk-bench");
    if let Some(session) = outgoing.session {
        request = request.header("x-session-id", session);
    }
    let request = request.body(outgoing.body)?;
    let start = Instant::now();
    let response = sender
        .send_request(request)
        .await
        .map_err(RequestError::Response)?;
    let mut first_byte = start.elapsed();
    let status = response.status();
    let mut body = response.into_body();
    let mut scan = AnswerScan::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(RequestError::Body)?;
        let Some(chunk) = frame.data_ref().filter(|chunk| !chunk.is_empty()) else {
            continue;
        };
        if outgoing.stream && scan.bytes() == 0 {
            first_byte = start.elapsed();
        }
        let events = scan.push(chunk);
        if outgoing.stream {
            tally.borrow_mut().events(events);
        }
    }
    let latency = start.elapsed();
    if status != StatusCode::OK {
        return Err(RequestError::Status {
            status,
            text: scan.tail(),
        });
    }
    if scan.bytes() == 0 || (outgoing.stream && !scan.is_done()) {
        return Err(RequestError::Short {
            bytes: scan.bytes(),
        });
    }
    Ok(Answer {
        latency,
        first_byte,
        bytes: scan.bytes(),
        usage: scan.usage(),
    })
}
