//! The listeners and the endpoints.

use crate::{
    answer::{self, Counts, Reply},
    fleet::{Fleet, Seen},
    request::BodyScan,
};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{cell::RefCell, convert::Infallible, io, rc::Rc};
use tokio::{net::TcpListener, task::JoinSet};

/// Bytes that hyper may buffer of a connection: a large body arrives in few reads.
const READ_BUFFER_BYTES: usize = 512 * 1_024;

/// Serves one replica on each port until the process ends; calls `ready` when all of them listen.
pub(crate) async fn serve(ports: &[u16], ready: impl FnOnce()) -> io::Result<()> {
    let fleet = Rc::new(RefCell::new(Fleet::new(ports)));
    let mut replicas = JoinSet::new();
    for (index, port) in ports.iter().enumerate() {
        let listener = TcpListener::bind(("127.0.0.1", *port))
            .await
            .map_err(|error| io::Error::new(error.kind(), format!("port {port}: {error}")))?;
        replicas.spawn_local(accept(listener, index, fleet.clone()));
    }
    ready();
    while replicas.join_next().await.is_some() {}
    Ok(())
}

async fn accept(listener: TcpListener, index: usize, fleet: Rc<RefCell<Fleet>>) {
    loop {
        // Too many open files or a client that is gone already: the next may fare better.
        let Ok((socket, _)) = listener.accept().await else {
            continue;
        };
        if socket.set_nodelay(true).is_err() {
            continue;
        }
        let fleet = fleet.clone();
        let service = service_fn(move |request| {
            let fleet = fleet.clone();
            async move { Ok::<_, Infallible>(handle(request, index, &fleet).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .max_buf_size(READ_BUFFER_BYTES)
            .serve_connection(TokioIo::new(socket), service);
        // How a connection ends is for its client to say.
        tokio::task::spawn_local(async move { drop(connection.await) });
    }
}

async fn handle(request: Request<Incoming>, index: usize, fleet: &RefCell<Fleet>) -> Reply {
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/v1/chat/completions") => chat(request, index, fleet).await,
        (&Method::GET, "/v1/models") => answer::models(),
        (&Method::GET, "/health") => answer::health(index),
        (&Method::GET, "/stats") => answer::json_reply(StatusCode::OK, &fleet.borrow().stats()),
        (&Method::GET, "/admin") => admin(
            request.uri().query().unwrap_or_default(),
            &mut fleet.borrow_mut(),
        ),
        (method, path) => answer::refusal(
            StatusCode::NOT_FOUND,
            &format!("{method} {path} is not served here"),
        ),
    }
}

fn admin(query: &str, fleet: &mut Fleet) -> Reply {
    match fleet.knobs.change(query) {
        Ok(change) => {
            fleet.knobs = change.knobs;
            if change.reset {
                fleet.reset();
            }
            answer::json_reply(StatusCode::OK, &fleet.stats())
        }
        Err(problem) => answer::refusal(StatusCode::BAD_REQUEST, &problem),
    }
}

async fn chat(request: Request<Incoming>, index: usize, fleet: &RefCell<Fleet>) -> Reply {
    let session_header = request.headers().contains_key("x-session-id");
    let mut body = request.into_body();
    let mut scan = BodyScan::default();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => scan.push(frame.data_ref().map_or(&[], |chunk| chunk)),
            Err(error) => {
                return answer::refusal(
                    StatusCode::BAD_REQUEST,
                    &format!("the body broke off: {error}"),
                );
            }
        }
    }
    let stream = scan.wants_stream();
    let seen = Seen {
        session: scan.session(),
        prompt_tokens: scan.tokens(),
        shared: scan.shared(),
        stream,
        session_header,
    };
    let cached = fleet.borrow_mut().chat(index, seen);
    let counts = Counts {
        prompt: seen.prompt_tokens,
        cached,
    };
    let knobs = fleet.borrow().knobs;
    if !knobs.first_byte.is_zero() {
        tokio::time::sleep(knobs.first_byte).await;
    }
    if stream {
        answer::chat_stream(knobs, counts, scan.wants_usage())
    } else {
        answer::chat(counts)
    }
}
