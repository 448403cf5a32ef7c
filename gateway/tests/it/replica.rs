//! A replica that does what its script says, over streams in memory.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gateway::serve::drain::Tasks;
use gateway::upstream::connect::{Connect, Connecting, Io};
use http::uri::Authority;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::watch;

/// Bytes that a stream in memory holds before its writer waits.
const PIPE_BYTES: usize = 16 << 10;

/// One thing that a replica does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Writes these bytes.
    Send(String),
    /// Waits.
    Wait(Duration),
    /// Closes the connection without another byte.
    Drop,
    /// Says nothing more for ever.
    Hang,
}

/// One request as a replica saw it.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) head: String,
    pub(crate) body: String,
}

/// What happened at a replica, in order.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) requests: Vec<Got>,
    pub(crate) connections: usize,
    /// Connections that the gateway closed while the script was still going on.
    pub(crate) cancelled: usize,
}

type Script = dyn Fn(usize, &Got) -> Vec<Step> + Send + Sync;

/// A replica under its address, such as `a:1`.
#[derive(Clone)]
pub(crate) struct Scripted {
    pub(crate) name: &'static str,
    script: Arc<Script>,
    pub(crate) log: Arc<Mutex<Log>>,
    /// What it answers to `GET /metrics`; nothing is a 404.
    pub(crate) metrics: &'static str,
    pub(crate) metrics_asked: Arc<AtomicUsize>,
    /// So many first looks at its metrics are answered with 503.
    pub(crate) metrics_fail: usize,
    reachable: watch::Sender<Reach>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Open,
    Refused,
    Silent,
}

impl Scripted {
    /// `script` gives the steps for the nth chat request, counted from 0.
    pub(crate) fn new(
        name: &'static str,
        script: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self::reading(name, move |n, _| script(n))
    }

    /// The same, with the request itself.
    pub(crate) fn reading(
        name: &'static str,
        script: impl Fn(usize, &Got) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            script: Arc::new(script),
            log: Arc::default(),
            metrics: "",
            metrics_asked: Arc::default(),
            metrics_fail: 0,
            reachable: watch::Sender::new(Reach::Open),
        }
    }

    /// Answers everything with a short stream.
    pub(crate) fn well(name: &'static str) -> Self {
        Self::new(name, |_| {
            stream(&[
                r#"{"choices":[{"index":0,"delta":{"content":"ok"}}]}"#,
                STOP,
                "[DONE]",
            ])
        })
    }

    /// From now on connections go like this; open ones are closed unless it is `Open`.
    pub(crate) fn reach(&self, reach: Reach) {
        self.reachable.send_replace(reach);
    }

    pub(crate) fn count(&self) -> usize {
        self.log.lock().unwrap().requests.len()
    }

    pub(crate) fn last(&self) -> Got {
        self.log.lock().unwrap().requests.last().unwrap().clone()
    }

    async fn serve(self, mut stream: DuplexStream) {
        self.log.lock().unwrap().connections += 1;
        let mut buffer = Vec::new();
        while let Some(got) = read_request(&mut stream, &mut buffer).await {
            let steps = if got.head.starts_with("GET /health") {
                json(200, r#"{"status":"ok","instance":"one"}"#)
            } else if got.head.starts_with("GET /metrics") {
                let asked = self.metrics_asked.fetch_add(1, Ordering::Relaxed);
                let status = match self.metrics {
                    _ if asked < self.metrics_fail => 503,
                    "" => 404,
                    _ => 200,
                };
                json(status, self.metrics)
            } else if got.head.starts_with("GET /v1/models") {
                json(
                    200,
                    r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#,
                )
            } else {
                let mut log = self.log.lock().unwrap();
                let steps = (self.script)(log.requests.len(), &got);
                log.requests.push(got);
                steps
            };
            for step in steps {
                let sent = match step {
                    Step::Send(text) => stream.write_all(text.as_bytes()).await,
                    Step::Wait(time) => wait_or_closed(&mut stream, time).await,
                    Step::Drop => return,
                    Step::Hang => wait_or_closed(&mut stream, Duration::from_secs(1 << 20)).await,
                };
                if sent.is_err() {
                    self.log.lock().unwrap().cancelled += 1;
                    return;
                }
            }
        }
    }
}

/// Waits, but not longer than the other side holds the connection.
async fn wait_or_closed(stream: &mut DuplexStream, time: Duration) -> io::Result<()> {
    let mut byte = [0];
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        _ = stream.read(&mut byte) => Err(io::ErrorKind::ConnectionReset.into()),
    }
}

async fn read_request(stream: &mut DuplexStream, buffer: &mut Vec<u8>) -> Option<Got> {
    loop {
        let text = String::from_utf8_lossy(buffer).into_owned();
        if let Some(end) = text.find("\r\n\r\n") {
            let head = text[..end].to_lowercase();
            let length = head.split("content-length: ").nth(1);
            let length = length.map_or(0, |l| l.lines().next().unwrap().parse().unwrap());
            if buffer.len() >= end + 4 + length {
                let body = String::from_utf8(buffer[end + 4..end + 4 + length].to_vec()).unwrap();
                buffer.drain(..end + 4 + length);
                let head = text[..end].to_owned();
                return Some(Got { head, body });
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

pub(crate) const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
pub(crate) const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4}}}"#;

/// The head of a stream.
pub(crate) fn stream_head() -> Step {
    Step::Send(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            .into(),
    )
}

/// Bytes as one HTTP chunk.
pub(crate) fn chunk(bytes: &str) -> Step {
    Step::Send(format!("{:x}\r\n{bytes}\r\n", bytes.len()))
}

pub(crate) fn event(data: &str) -> Step {
    chunk(&format!("data: {data}\n\n"))
}

pub(crate) fn end() -> Step {
    Step::Send("0\r\n\r\n".into())
}

pub(crate) fn wait(ms: u64) -> Step {
    Step::Wait(Duration::from_millis(ms))
}

/// A whole stream of these data.
pub(crate) fn stream(events: &[&str]) -> Vec<Step> {
    let mut steps = vec![stream_head()];
    steps.extend(events.iter().map(|data| event(data)));
    steps.push(end());
    steps
}

/// A whole answer.
pub(crate) fn json(status: u16, body: &str) -> Vec<Step> {
    vec![Step::Send(format!(
        "HTTP/1.1 {status} Any\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))]
}

/// Connects to scripted replicas by host name.
#[derive(Clone)]
pub(crate) struct Wires {
    replicas: Arc<HashMap<&'static str, Scripted>>,
    tasks: Tasks,
}

impl Wires {
    pub(crate) fn new(replicas: &[Scripted], tasks: Tasks) -> Self {
        let replicas = replicas
            .iter()
            .map(|replica| (replica.name, replica.clone()))
            .collect();
        Self {
            replicas: Arc::new(replicas),
            tasks,
        }
    }
}

impl Connect for Wires {
    fn connect<'a>(&'a self, to: &'a Authority) -> Connecting<'a> {
        Box::pin(async move {
            let replica = self.replicas[to.host()].clone();
            let reach = *replica.reachable.borrow();
            match reach {
                Reach::Refused => return Err(io::ErrorKind::ConnectionRefused.into()),
                Reach::Silent => std::future::pending().await,
                Reach::Open => {}
            }
            let (ours, theirs) = duplex(PIPE_BYTES);
            self.tasks.spawn(async move {
                let mut reachable = replica.reachable.subscribe();
                tokio::select! {
                    () = replica.serve(theirs) => {}
                    _ = reachable.wait_for(|reach| *reach != Reach::Open) => {}
                }
            });
            Ok(Box::new(ours) as Box<dyn Io>)
        })
    }
}
