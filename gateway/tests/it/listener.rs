//! The gateway on real sockets: both HTTP versions, TLS with new certificates, the operators' pages, the drain.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway::config::{Config, TlsFiles};
use gateway::serve::Gateway;
use gateway::serve::drain::Tasks;
use gateway::state::Known;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::fleet::{chat, config};
use crate::replica::{STOP, Scripted, Step, Wires, end, event, stream_head, wait};

const A: &str = r#"{"choices":[{"index":0,"delta":{"content":"A"}}]}"#;

pub(crate) struct Running {
    clients: SocketAddr,
    operators: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
    tasks: Tasks,
    pub(crate) known: Arc<Known>,
}

pub(crate) async fn start(replicas: &[Scripted], change: impl FnOnce(&mut Config)) -> Running {
    let mut config = config(replicas);
    change(&mut config);
    let (tasks, _) = Tasks::new();
    let wires = Wires::new(replicas, tasks.clone());
    let gateway = Gateway::bind_over(config, Box::new(wires)).await.unwrap();
    let (clients, operators) = (
        gateway.client_address().unwrap(),
        gateway.admin_address().unwrap(),
    );
    let known = gateway.known().clone();
    let (stop, stopped) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    tasks.spawn(async move {
        gateway.run(async { stopped.await.unwrap() }).await;
        let _ = end.send(());
    });
    while !known
        .fleet
        .replicas()
        .iter()
        .all(|replica| replica.is_ready())
    {
        tokio::task::yield_now().await;
    }
    Running {
        clients,
        operators,
        stop,
        ended,
        tasks,
        known,
    }
}

impl Running {
    /// One request on a connection of its own.
    async fn http1(&self, to: SocketAddr, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let stream = TcpStream::connect(to).await.unwrap();
        let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        self.tasks.spawn(async { driver.await.unwrap() });
        sender.send_request(request).await.unwrap()
    }

    pub(crate) async fn ask(&self, body: String) -> String {
        text(self.http1(self.clients, post(body)).await).await
    }

    pub(crate) async fn page(&self, path: &str) -> (u16, String) {
        let response = self.http1(self.operators, get(path)).await;
        let status = response.status().as_u16();
        (status, text(response).await)
    }
}

fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(path)
        .header("host", "here")
        .body(Full::default())
        .unwrap()
}

fn post(body: String) -> Request<Full<Bytes>> {
    let request = Request::post("http://here/v1/chat/completions").header("host", "here");
    request.body(Full::from(body)).unwrap()
}

async fn text(response: Response<Incoming>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn both_http_versions_are_spoken_in_plain_text() {
    let running = start(&[Scripted::well("a")], |_| {}).await;
    let response = running.http1(running.clients, post(chat(&["x"]))).await;
    assert_eq!(response.headers()["x-pinion-replica"], "a");
    assert!(text(response).await.ends_with("data: [DONE]\n\n"));
    let stream = TcpStream::connect(running.clients).await.unwrap();
    let (mut sender, driver) = http2::handshake(running.tasks.clone(), TokioIo::new(stream))
        .await
        .unwrap();
    running.tasks.spawn(async { driver.await.unwrap() });
    for _ in 0..3 {
        let response = sender.send_request(post(chat(&["x"]))).await.unwrap();
        assert_eq!(response.version(), http::Version::HTTP_2);
        assert!(text(response).await.ends_with("data: [DONE]\n\n"));
    }
}

#[tokio::test]
async fn a_kept_connection_carries_one_request_after_another() {
    let running = start(&[Scripted::well("a")], |_| {}).await;
    let stream = TcpStream::connect(running.clients).await.unwrap();
    let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    running.tasks.spawn(async { driver.await.unwrap() });
    for _ in 0..3 {
        sender.ready().await.unwrap();
        let response = sender.send_request(post(chat(&["x"]))).await.unwrap();
        assert!(text(response).await.ends_with("data: [DONE]\n\n"));
    }
}

#[tokio::test]
async fn a_body_that_is_announced_too_large_is_refused_before_it_is_sent() {
    // RC-117
    let running = start(&[Scripted::well("a")], |config| {
        config.limits.body_bytes_max = 100
    })
    .await;
    let mut stream = TcpStream::connect(running.clients).await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: here\r\ncontent-length: 101\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("body_too_large"), "{answer}");
}

#[tokio::test]
async fn the_operators_pages_tell_how_it_is() {
    let running = start(&[Scripted::well("a"), Scripted::well("b")], |_| {}).await;
    assert_eq!(running.page("/livez").await, (200, "ok\n".into()));
    assert_eq!(running.page("/readyz").await.0, 200);
    let _ = text(running.http1(running.clients, post(chat(&["x"]))).await).await;
    let (_, metrics) = running.page("/metrics").await;
    assert!(
        metrics.contains("gateway_decisions_total{reason=\"prefix_home\""),
        "{metrics}"
    );
    assert!(metrics.contains("gateway_prefix_homes 1"), "{metrics}");
    let (_, state) = running.page("/state").await;
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    assert_eq!(state["replicas"].as_array().unwrap().len(), 2);
    assert_eq!(state["pins"]["prefixes"], 1);
    assert_eq!(running.page("/nothing").await.0, 404);
    // Operators' pages are not on the clients' port.
    assert_eq!(
        running
            .http1(running.clients, get("/metrics"))
            .await
            .status(),
        404
    );
}

#[tokio::test]
async fn a_drain_lets_answers_end_and_takes_nothing_new() {
    let slow = Scripted::new("a", |_| {
        vec![
            stream_head(),
            event(A),
            wait(300),
            event(STOP),
            event("[DONE]"),
            end(),
        ]
    });
    let running = start(&[slow], |_| {}).await;
    let mut response = running.http1(running.clients, post(chat(&["x"]))).await;
    response.body_mut().frame().await.unwrap().unwrap();
    let Running {
        clients,
        operators,
        stop,
        ended,
        tasks,
        ..
    } = running;
    stop.send(()).unwrap();
    while TcpStream::connect(clients).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let stream = TcpStream::connect(operators).await.unwrap();
    let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tasks.spawn(async {
        // The operators' listener may end first.
        let _ = driver.await;
    });
    let ready = sender.send_request(get("/readyz")).await.unwrap();
    assert_eq!(ready.status(), 503);
    assert!(text(response).await.ends_with("data: [DONE]\n\n"));
    tokio::time::timeout(Duration::from_secs(5), ended)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_drain_that_takes_too_long_is_cut() {
    let slow = Scripted::new("a", |_| vec![stream_head(), event(A), wait(60_000)]);
    let running = start(&[slow], |config| {
        config.timeouts.drain = Duration::from_millis(100)
    })
    .await;
    let mut response = running.http1(running.clients, post(chat(&["x"]))).await;
    response.body_mut().frame().await.unwrap().unwrap();
    running.stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(5), running.ended)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_silent_client_is_let_go() {
    let running = start(&[Scripted::well("a")], |config| {
        config.timeouts.request_head = Duration::from_millis(100);
    })
    .await;
    for said in ["", "POST /v1/chat"] {
        let mut stream = TcpStream::connect(running.clients).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer));
        let _ = closed.await.unwrap();
    }
}

/// Writes a certificate of its own making for `here`, and gives what a client needs to trust it.
fn certificate(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["here".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

/// One HTTP/2 request over TLS by a client that trusts only this certificate.
async fn over_tls(running: &Running, trusted: &CertificateDer<'static>) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(running.clients).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
    let name = ServerName::try_from("here").unwrap();
    let stream = connector
        .connect(name, stream)
        .await
        .map_err(|error| error.to_string())?;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, driver) = http2::handshake(running.tasks.clone(), TokioIo::new(stream))
        .await
        .unwrap();
    running.tasks.spawn(async {
        // The client's side ends with its sender.
        let _ = driver.await;
    });
    Ok(text(sender.send_request(post(chat(&["x"]))).await.unwrap()).await)
}

#[tokio::test]
async fn tls_takes_up_a_new_pair_and_keeps_the_old_one_when_the_new_is_bad() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let first = certificate(folder.path());
    let files = TlsFiles {
        cert: at("cert.pem"),
        key: at("key.pem"),
    };
    let running = start(&[Scripted::well("a")], |config| config.tls = Some(files)).await;
    assert!(
        over_tls(&running, &first)
            .await
            .unwrap()
            .ends_with("data: [DONE]\n\n")
    );
    let reloads = async |result: &str| {
        let series = format!("gateway_tls_reloads_total{{result=\"{result}\"}} 1");
        while !running.page("/metrics").await.1.contains(&series) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    std::fs::write(at("cert.pem"), "no certificate").unwrap();
    reloads("kept_old").await;
    assert!(over_tls(&running, &first).await.is_ok());
    let second = certificate(folder.path());
    reloads("ok").await;
    assert!(over_tls(&running, &second).await.is_ok());
    assert!(over_tls(&running, &first).await.is_err());
}

#[tokio::test]
async fn a_bad_start_says_what_is_wrong() {
    let check = async |change: &dyn Fn(&mut Config), words: &str| {
        let mut config = config(&[Scripted::well("a")]);
        change(&mut config);
        let error = Gateway::bind(config).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("policy.toml"), "version = 1\nnope = 2\n").unwrap();
    certificate(folder.path());
    check(
        &|config| config.policy = Some(at("policy.toml")),
        "policy.toml:2:1: ",
    )
    .await;
    check(
        &|config| config.policy = Some(at("missing.toml")),
        "missing.toml: cannot be read",
    )
    .await;
    let files = |cert: &str, key: &str| {
        Some(TlsFiles {
            cert: at(cert),
            key: at(key),
        })
    };
    check(
        &|config| config.tls = files("key.pem", "key.pem"),
        "no certificate in it",
    )
    .await;
    check(
        &|config| config.tls = files("cert.pem", "none.pem"),
        "none.pem: ",
    )
    .await;
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    check(
        &|config| config.admin_listen = address,
        "`admin_listen` cannot bind",
    )
    .await;
}

/// Sends a chat request and hands back the connection with nothing read from it.
async fn ask(running: &Running) -> TcpStream {
    let mut stream = TcpStream::connect(running.clients).await.unwrap();
    let body = chat(&["x"]);
    let length = body.len();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: here\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_client_that_closes_its_socket_stops_its_replica() {
    // RC-108: while the replica is silent, and in the middle of its answer.
    for (steps, said) in [
        (vec![Step::Hang], 0),
        (vec![stream_head(), event(A), Step::Hang], 1),
    ] {
        let replica = Scripted::new("a", move |_| steps.clone());
        let running = start(std::slice::from_ref(&replica), |_| {}).await;
        let mut stream = ask(&running).await;
        if said > 0 {
            let _ = stream.read(&mut [0; 1000]).await.unwrap();
        }
        while replica.count() == 0 {
            tokio::task::yield_now().await;
        }
        drop(stream);
        let gone = tokio::time::Instant::now();
        while replica.log.lock().unwrap().cancelled == 0 {
            assert!(
                gone.elapsed() < Duration::from_millis(200),
                "{said} events said"
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn a_client_that_never_reads_loses_its_connection() {
    // More than loopback's buffers on both sides hold.
    let padding = "x".repeat(64 << 10);
    let long = format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{padding}"}}}}]}}"#);
    let replica = Scripted::new("a", move |_| {
        let mut steps = vec![stream_head()];
        steps.extend((0..800).map(|_| event(&long)));
        steps
    });
    let running = start(std::slice::from_ref(&replica), |config| {
        config.timeouts.client_stall = Duration::from_secs(1);
    })
    .await;
    let stream = ask(&running).await;
    let asked = tokio::time::Instant::now();
    while replica.log.lock().unwrap().cancelled == 0 {
        assert!(asked.elapsed() < Duration::from_secs(20), "still held");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(stream);
}
