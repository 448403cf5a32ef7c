//! A replica that computes nothing and counts truly: a real prefix cache with LRU eviction, real sockets, and knobs for what goes
//! wrong with replicas. Many of them run in one test process.

mod answer;
mod cache;

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use hyper::{
    Method, Request, StatusCode, body::Incoming, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet, time::sleep};

use answer::{Question, Reply, reply};
use cache::Cache;

pub use answer::MODEL;
pub use cache::{BLOCK_TOKENS, BYTES_PER_TOKEN};

/// How a scripted replica is built.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Blocks of [`BLOCK_TOKENS`] tokens that its cache holds.
    pub kv_blocks: usize,
    /// How long the engine is busy with 1,000 prompt tokens that are not cached; one prompt after the other.
    pub prefill_per_1000: Duration,
}

/// What a replica has served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Chat requests.
    pub requests: u64,
    /// Their prompt tokens.
    pub prompt_tokens: u64,
    /// Those of them that were in the cache.
    pub cached_tokens: u64,
}

/// One scripted replica. It stops with the value.
#[derive(Debug)]
pub struct Scripted {
    addr: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    setup: Setup,
    engine: Mutex<Engine>,
    /// Held while a prompt is prefilled; waiting requests queue here in order of arrival.
    prefill: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Engine {
    cache: Cache,
    served: Served,
    /// Processes that have lived under this replica's name.
    lives: u32,
}

impl Scripted {
    /// A replica that listens.
    ///
    /// # Panics
    /// When loopback has no free port.
    pub async fn start(setup: Setup) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free loopback port");
        let addr = listener.local_addr().expect("a bound socket");
        let engine = Mutex::new(Engine {
            cache: Cache::new(setup.kv_blocks),
            served: Served::default(),
            lives: 1,
        });
        let shared = Arc::new(Shared {
            setup,
            engine,
            prefill: tokio::sync::Mutex::new(()),
        });
        let mut replica = Scripted {
            addr,
            shared,
            serving: JoinSet::new(),
        };
        replica.listen(listener);
        replica
    }

    fn listen(&mut self, listener: TcpListener) {
        self.serving.spawn(accept(listener, self.shared.clone()));
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it has served so far.
    pub fn served(&self) -> Served {
        self.shared.engine().served
    }

    /// Empties its cache; the process lives on and says nothing of it.
    pub fn evict_all(&self) {
        self.shared.engine().cache.clear();
    }

    /// Another process takes its place at once, with an empty cache.
    pub fn restart(&self) {
        let mut engine = self.shared.engine();
        engine.cache.clear();
        engine.lives += 1;
    }

    /// Nothing listens any more, and open connections are closed.
    pub async fn die(&mut self) {
        self.serving.shutdown().await;
    }

    /// A new process listens where the dead one did, with an empty cache.
    ///
    /// # Panics
    /// When somebody else has taken its port.
    pub async fn come_back(&mut self) {
        self.restart();
        let listener = TcpListener::bind(self.addr)
            .await
            .expect("the port is still free");
        self.listen(listener);
    }
}

impl Shared {
    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().expect("no holder panics")
    }

    /// Prefills a prompt: its tokens, and how many of them were cached.
    async fn prefill(&self, prompt: &[u8]) -> (u64, u64) {
        let _turn = self.prefill.lock().await;
        let (tokens, cached) = {
            let mut engine = self.engine();
            let (tokens, cached) = engine.cache.visit(prompt);
            engine.served.requests += 1;
            engine.served.prompt_tokens += tokens;
            engine.served.cached_tokens += cached;
            (tokens, cached)
        };
        let work = self.setup.prefill_per_1000.as_secs_f64() * (tokens - cached) as f64 / 1_000.0;
        if work > 0.0 {
            sleep(Duration::from_secs_f64(work)).await;
        }
        (tokens, cached)
    }

    async fn handle(&self, request: Request<Incoming>) -> Reply {
        match (request.method(), request.uri().path()) {
            (&Method::POST, "/v1/chat/completions") => self.chat(request).await,
            (&Method::GET, "/health") => {
                let instance = format!("life-{}", self.engine().lives);
                let blocks = self.setup.kv_blocks;
                let health = json!({"status": "ok", "instance": instance, "kv_blocks": blocks, "block_tokens": BLOCK_TOKENS});
                reply(StatusCode::OK, "application/json", health.to_string())
            }
            (&Method::GET, "/v1/models") => {
                let model =
                    json!({"id": MODEL, "object": "model", "created": 1, "owned_by": "tests"});
                let models = json!({"object": "list", "data": [model]});
                reply(StatusCode::OK, "application/json", models.to_string())
            }
            _ => reply(StatusCode::NOT_FOUND, "text/plain", "not served here"),
        }
    }

    async fn chat(&self, request: Request<Incoming>) -> Reply {
        let question = match answer::collect(request.into_body()).await {
            Ok(body) => Question::read(&body),
            Err(problem) => Err(problem),
        };
        match question {
            Ok(question) => {
                let (tokens, cached) = self.prefill(&question.prompt).await;
                question.answer(tokens, cached)
            }
            Err(problem) => reply(StatusCode::BAD_REQUEST, "text/plain", problem),
        }
    }
}

/// Serves until it is dropped, and every connection with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((socket, _)) = accepted else { continue };
        if socket.set_nodelay(true).is_err() {
            continue;
        }
        let shared = shared.clone();
        let service = service_fn(move |request| {
            let shared = shared.clone();
            async move { Ok::<_, Infallible>(shared.handle(request).await) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
        // How a connection ends is for its client to say.
        connections.spawn(async move { drop(connection.await) });
    }
}
