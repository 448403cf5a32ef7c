//! A gateway over scripted replicas, driven without sockets, under a paused clock.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use gateway::config::{Config, ReplicaConfig};
use gateway::metrics::Metrics;
use gateway::reply::ReplyBody;
use gateway::serve::drain::Tasks;
use gateway::stack::stack;
use gateway::state::policy::PolicyStore;
use gateway::state::replicas::Told;
use gateway::state::{Known, models};
use gateway::upstream::client::Client;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use tower::Service as _;

use crate::replica::{Scripted, Wires};

pub(crate) struct Fleet {
    pub(crate) known: Arc<Known>,
    pub(crate) replicas: Vec<Scripted>,
    config: Config,
    client: Arc<Client>,
    tasks: Tasks,
    /// One service for all requests, as in the gateway: admission is shared.
    service: Box<dyn Fn(Request<Full<Bytes>>) -> Answering + Send + Sync>,
}

type Answering = std::pin::Pin<
    Box<dyn Future<Output = Result<Response<ReplyBody>, std::convert::Infallible>> + Send>,
>;

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn replica(&self) -> &str {
        self.header("x-pinion-replica")
    }

    pub(crate) fn reason(&self) -> &str {
        self.header("x-pinion-reason")
    }

    pub(crate) fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        body["error"]["code"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn config(replicas: &[Scripted]) -> Config {
    let any = "127.0.0.1:0".parse().unwrap();
    let replica = |replica: &Scripted| {
        let authority = format!("{}:1", replica.name).parse().unwrap();
        ReplicaConfig::new(replica.name.to_owned(), authority)
    };
    Config::new(any, any, replicas.iter().map(replica).collect())
}

impl Fleet {
    /// All replicas ready, none of which has told its models.
    pub(crate) fn new(replicas: Vec<Scripted>) -> Self {
        Self::with(replicas, |_| {})
    }

    pub(crate) fn with(replicas: Vec<Scripted>, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config(&replicas);
        change(&mut config);
        let (tasks, _) = Tasks::new();
        let policy =
            PolicyStore::load(config.policy.as_deref().map(Path::new), &config.replicas).unwrap();
        let known = Arc::new(Known::new(&config, policy, Metrics::new()));
        let wires = Wires::new(&replicas, tasks.clone());
        let client = Arc::new(Client::new(Box::new(wires), config.timeouts));
        let service = stack(&config, &known, client.clone());
        let fleet = Self {
            known,
            replicas,
            config,
            client,
            tasks,
            service: Box::new(move |request| service.clone().call(request)),
        };
        for replica in fleet.known.fleet.replicas() {
            replica.on_probe_ok(told("first"));
        }
        fleet
    }

    /// Starts the probes.
    pub(crate) fn probe(&self) {
        gateway::upstream::probe::start(&self.tasks, &self.known, &self.client);
    }

    /// Lets a replica tell its models.
    pub(crate) fn tell_models(&self, index: usize, ids: &[&str]) {
        let list: Vec<_> = ids.iter().map(|id| format!(r#"{{"id":"{id}"}}"#)).collect();
        let list = format!(r#"{{"data":[{}]}}"#, list.join(","));
        let replica = &self.known.fleet.replicas()[index];
        self.known
            .fleet
            .on_models(replica, models::parse(list.as_bytes()).unwrap());
    }

    pub(crate) fn body_limit(&self) -> usize {
        self.config.limits.body_bytes_max
    }

    /// The answer as it begins.
    pub(crate) async fn open(&self, headers: &[(&str, &str)], body: &str) -> Response<ReplyBody> {
        let mut request = Request::post("/v1/chat/completions?a=b");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Full::from(body.to_owned())).unwrap())
            .await
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<ReplyBody> {
        (self.service)(request).await.unwrap()
    }

    /// A request whose body comes in pieces, through a stack of its own.
    pub(crate) async fn send_pieces<B>(&self, request: Request<B>) -> Response<ReplyBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
    {
        stack(&self.config, &self.known, self.client.clone())
            .call(request)
            .await
            .unwrap()
    }

    /// The whole answer.
    pub(crate) async fn ask(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        let response = self.open(headers, body).await;
        read(response).await
    }

    /// The value of a series, written as in the text format; 0 where it is not there.
    #[track_caller]
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.known.metrics.text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Requests at any replica, or admitted, now.
    pub(crate) fn open_requests(&self) -> f64 {
        let names = self.replicas.iter().map(|replica| replica.name);
        let at = names.map(|name| self.metric(&format!("gateway_in_flight{{replica=\"{name}\"}}")));
        at.sum::<f64>() + self.metric("gateway_admitted")
    }

    pub(crate) fn outcome(&self, replica: &str, outcome: &str) -> f64 {
        let labels = format!("outcome=\"{outcome}\",replica=\"{replica}\"");
        self.metric(&format!("gateway_requests_total{{{labels}}}"))
    }
}

/// What a replica of this process says of itself, with a cache that nothing here fills.
pub(crate) fn told(instance: &str) -> Told<'_> {
    Told {
        instance: Some(instance),
        cache_tokens: 1_000_000,
    }
}

/// Reads an answer to its end; a body that breaks ends with a mark.
pub(crate) async fn read(response: Response<ReplyBody>) -> Answer {
    let (parts, mut body) = response.into_parts();
    let mut text = String::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap()),
            Err(failure) => {
                text.push_str(&format!("<broken: {}>", failure.row().code));
                break;
            }
        }
    }
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: text,
    }
}

/// A streaming request with these messages.
pub(crate) fn chat(messages: &[&str]) -> String {
    let roles = ["user", "assistant"];
    let messages: Vec<_> = messages
        .iter()
        .enumerate()
        .map(|(n, text)| format!(r#"{{"role":"{}","content":"{text}"}}"#, roles[n % 2]))
        .collect();
    format!(
        r#"{{"model":"m","stream":true,"messages":[{}]}}"#,
        messages.join(",")
    )
}
