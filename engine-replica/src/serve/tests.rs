use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::*;
use crate::engine::handle::EngineHandle;
use crate::scripted::{self, Gate, MANY};

/// Longest wait for anything that must come; a machine under load still makes it.
const WAIT_MAX: Duration = Duration::from_secs(20);

struct Server {
    address: SocketAddr,
    engine: EngineHandle,
    gate: Arc<Gate>,
    signal: Arc<Notify>,
    task: JoinSet<Ended>,
}

impl Server {
    async fn start(drain_max: Duration) -> Server {
        let (engine, gate) = scripted::engine(4, 4);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let signal = Arc::new(Notify::new());
        let api = scripted::api(engine.clone());
        let mut task = JoinSet::new();
        let notify = Arc::clone(&signal);
        task.spawn(async move {
            let signals = || {
                let notify = Arc::clone(&notify);
                async move { notify.notified().await }
            };
            serve(api, listener, signals, drain_max).await
        });
        Server {
            address,
            engine,
            gate,
            signal,
            task,
        }
    }

    async fn ended(mut self) -> Ended {
        timeout(WAIT_MAX, self.task.join_next())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
    }

    /// The whole answer to a request that asks for the connection's end.
    async fn get(&self, path: &str) -> String {
        let mut client = Client::connect(self).await;
        client
            .write(&format!(
                "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
            ))
            .await;
        client.rest().await
    }

    /// Until `seen` says yes, without a clock.
    async fn until(&self, seen: impl AsyncFn(&Server) -> bool) {
        let wait = async {
            while !seen(self).await {
                tokio::task::yield_now().await;
            }
        };
        timeout(WAIT_MAX, wait).await.unwrap();
    }
}

struct Client(TcpStream);

impl Client {
    async fn connect(server: &Server) -> Client {
        Client(TcpStream::connect(server.address).await.unwrap())
    }

    async fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Asks for an answer that never ends by itself.
    async fn ask(&mut self, stream: bool) {
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":"a"}}],"stream":{stream},"ignore_eos":true,"temperature":0}}"#
        );
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.write(&(head + &body)).await;
    }

    /// What comes until `mark` has come.
    async fn read_until(&mut self, mark: &str) -> String {
        let mut text = String::new();
        while !text.contains(mark) {
            let mut piece = [0; 4096];
            let read = timeout(WAIT_MAX, self.0.read(&mut piece))
                .await
                .unwrap()
                .unwrap();
            assert!(read > 0, "closed after: {text}");
            text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        }
        text
    }

    async fn rest(mut self) -> String {
        let mut text = String::new();
        timeout(WAIT_MAX, self.0.read_to_string(&mut text))
            .await
            .unwrap()
            .unwrap();
        text
    }
}

const LONG: Duration = Duration::from_secs(60);

// RC-124: a client with a limit on headers must not give up during a long prefill.
#[tokio::test]
async fn rc_124_headers_come_before_the_first_token() {
    let server = Server::start(LONG).await;
    let mut client = Client::connect(&server).await;
    client.ask(true).await;
    let head = client.read_until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("text/event-stream"), "{head}");
    assert_eq!(server.engine.stats().generated_tokens, 0);
    server.gate.open(MANY);
    client.read_until("data: [DONE]").await;
}

// RC-123: each token is on the wire before the next is made.
#[tokio::test]
async fn rc_123_an_event_arrives_before_the_next_is_made() {
    let server = Server::start(LONG).await;
    let mut client = Client::connect(&server).await;
    client.ask(true).await;
    for letter in ["b", "c", "d"] {
        server.gate.open(1);
        client
            .read_until(&format!("{{\"content\":\"{letter}\"}}"))
            .await;
    }
}

async fn aborted(server: &Server) -> bool {
    let text = server.get("/metrics").await;
    text.contains("finished_reason=\"abort\",model_name=\"alphabet\"} 1")
}

async fn check_cancelled(stream: bool) {
    let server = Server::start(LONG).await;
    let mut client = Client::connect(&server).await;
    client.ask(stream).await;
    server.gate.open(2);
    server
        .until(async |server| server.engine.stats().steps == 2)
        .await;
    drop(client);
    server.until(aborted).await;
    // One step is under way; the sequence is gone before the one after it.
    server.gate.open(1);
    server
        .until(async |server| server.engine.stats().cancelled == 1)
        .await;
    let stats = server.engine.stats();
    assert_eq!((stats.running, stats.kv_blocks_used), (0, 0));
    assert!(stats.generated_tokens <= 3, "{stats:?}");
}

#[tokio::test]
async fn rc_108_a_client_that_leaves_a_stream_cancels_its_sequence() {
    check_cancelled(true).await;
}

#[tokio::test]
async fn rc_108_a_client_that_leaves_a_whole_answer_cancels_its_sequence() {
    check_cancelled(false).await;
}

#[tokio::test]
async fn a_connection_carries_one_request_after_another() {
    let server = Server::start(LONG).await;
    let mut client = Client::connect(&server).await;
    for _ in 0..3 {
        client
            .write("GET /health HTTP/1.1\r\nhost: a\r\n\r\n")
            .await;
        client.read_until("\"waiting\":0}").await;
    }
}

#[tokio::test]
async fn a_drain_refuses_the_new_and_finishes_the_running() {
    let server = Server::start(LONG).await;
    let mut running = Client::connect(&server).await;
    running.ask(true).await;
    running.read_until("\r\n\r\n").await;
    server.signal.notify_one();
    server
        .until(async |server| server.engine.is_draining())
        .await;
    assert!(server.get("/health").await.starts_with("HTTP/1.1 503"));
    let mut late = Client::connect(&server).await;
    late.ask(true).await;
    let refused = late.read_until("\"code\":").await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    server.gate.open(MANY);
    assert!(running.rest().await.contains("data: [DONE]"));
    assert_eq!(server.ended().await, Ended::Drained);
}

#[tokio::test]
async fn an_idle_server_ends_at_the_signal_and_closes_idle_connections() {
    let server = Server::start(LONG).await;
    let mut idle = Client::connect(&server).await;
    idle.write("GET /health HTTP/1.1\r\nhost: a\r\n\r\n").await;
    idle.read_until("\"waiting\":0}").await;
    server.signal.notify_one();
    assert_eq!(idle.rest().await, "");
    assert_eq!(server.ended().await, Ended::Drained);
}

#[tokio::test]
async fn a_second_signal_cuts_off_what_runs() {
    let server = Server::start(LONG).await;
    let mut running = Client::connect(&server).await;
    running.ask(true).await;
    running.read_until("\r\n\r\n").await;
    server.signal.notify_one();
    server
        .until(async |server| server.engine.is_draining())
        .await;
    server.signal.notify_one();
    assert_eq!(server.ended().await, Ended::CutOff);
}

#[tokio::test]
async fn a_drain_past_its_time_cuts_off_what_runs() {
    let server = Server::start(Duration::ZERO).await;
    let mut running = Client::connect(&server).await;
    running.ask(true).await;
    running.read_until("\r\n\r\n").await;
    server.signal.notify_one();
    assert_eq!(server.ended().await, Ended::CutOff);
}

#[tokio::test]
async fn an_engine_that_dies_ends_the_server() {
    let server = Server::start(LONG).await;
    server.gate.open(MANY);
    let mut client = Client::connect(&server).await;
    let body = r#"{"messages":[{"role":"user","content":"?"}]}"#;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nconnection: close";
    client
        .write(&format!(
            "{head}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    assert!(client.rest().await.starts_with("HTTP/1.1 500"));
    assert_eq!(server.ended().await, Ended::EngineStopped);
}
