//! What `gateway.toml` says, checked whole: an unknown key or a value out of range is a problem, and all
//! problems are told at once.

mod read;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chat_wire::thinking::Engine;
use http::uri::Authority;
use toml::de::DeTable;

use read::{Problems, Section};

/// Most replicas behind one gateway: bounds every per-replica metric series and the work of one decision.
pub const REPLICAS_MAX: usize = 256;

/// Everything that `gateway serve` is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where operators connect: metrics, liveness, readiness, state.
    pub admin_listen: SocketAddr,
    /// The fleet, 1 to [`REPLICAS_MAX`].
    pub replicas: Vec<ReplicaConfig>,
    /// The routing policy file; `None` is the policy built in.
    pub policy: Option<PathBuf>,
    /// Bounds on what the gateway takes in.
    pub limits: Limits,
    /// How long the gateway waits for each party.
    pub timeouts: Timeouts,
    /// Certificate and key of the client listener; `None` serves plain text.
    pub tls: Option<TlsFiles>,
}

/// One replica as the configuration names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaConfig {
    /// Its name in headers, metrics and the rendezvous order. Renaming a replica moves its sessions.
    pub name: String,
    /// Host and port.
    pub authority: Authority,
    /// Which engine it is, where the configuration says.
    pub engine: Option<Engine>,
    /// The source of its chat template, where the configuration names the file.
    pub template: Option<String>,
}

impl ReplicaConfig {
    /// A replica of which no more is known.
    #[must_use]
    pub fn new(name: String, authority: Authority) -> Self {
        Self {
            name,
            authority,
            engine: None,
            template: None,
        }
    }
}

/// Bounds on what the gateway takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Chat requests being answered at one time; one more is refused with 503.
    pub in_flight_max: usize,
    /// Bytes of one request body; one more is refused with 413.
    pub body_bytes_max: usize,
    /// Client connections at one time; more wait in the kernel's backlog.
    pub connections_max: usize,
}

/// How long the gateway waits for each party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A client's request head; also how long a kept connection may lie idle before its next one.
    pub request_head: Duration,
    /// A client's request body, from its first to its last byte.
    pub request_body: Duration,
    /// A TCP connection to a replica.
    pub connect: Duration,
    /// A replica's response head: covers its queue and, without streaming, the whole answer.
    pub first_byte: Duration,
    /// The silence between two chunks of an answer.
    pub idle: Duration,
    /// A client that takes nothing of what was sent to it.
    pub client_stall: Duration,
    /// Answers in flight at shutdown.
    pub drain: Duration,
}

/// The files of the client listener's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM certificate chain, leaf first.
    pub cert: PathBuf,
    /// PEM private key.
    pub key: PathBuf,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight_max: 4096,
            body_bytes_max: 64 << 20,
            connections_max: 16_384,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            request_head: Duration::from_secs(75),
            request_body: Duration::from_secs(120),
            connect: Duration::from_secs(2),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            client_stall: Duration::from_secs(120),
            drain: Duration::from_secs(30),
        }
    }
}

/// Why a configuration was refused: one line a problem.
#[derive(Debug)]
pub struct ConfigError(pub Vec<String>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// A configuration with the defaults for everything but the addresses and the fleet.
    #[must_use]
    pub fn new(listen: SocketAddr, admin_listen: SocketAddr, replicas: Vec<ReplicaConfig>) -> Self {
        Self {
            listen,
            admin_listen,
            replicas,
            policy: None,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            tls: None,
        }
    }

    /// Reads and checks a file. Paths within it are relative to its folder.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has problems: all of them, with their places.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            ConfigError(vec![format!(
                "{name}: cannot be read: {error}; give its path with --config"
            )])
        })?;
        Self::parse(&name, &text, path.parent().unwrap_or(Path::new("")))
    }

    /// Checks the text of a file called `name`, whose relative paths start at `folder`.
    ///
    /// # Errors
    /// Every problem, each as `name:line:column: message`.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, ConfigError> {
        let mut problems = Problems::new(name, text);
        let (table, syntax) = DeTable::parse_recoverable(text);
        for error in syntax {
            problems.add(error.span().map_or(0, |span| span.start), error.message());
        }
        if !problems.is_empty() {
            return Err(ConfigError(problems.into_report()));
        }
        let config = read_root(&mut problems, Section::root(&table), folder);
        match config {
            Some(config) if problems.is_empty() => Ok(config),
            _ => Err(ConfigError(problems.into_report())),
        }
    }
}

fn read_root(
    problems: &mut Problems<'_>,
    mut root: Section<'_, '_>,
    folder: &Path,
) -> Option<Config> {
    const ADDRESS: &str = "an address and port such as `127.0.0.1:8080`";
    root.missing(problems, "listen", ADDRESS);
    root.missing(problems, "admin_listen", ADDRESS);
    root.missing(
        problems,
        "replicas",
        "at least one table `[[replicas]]` with `name` and `url`",
    );
    let listen = root.parsed(problems, "listen", ADDRESS, |text| text.parse().ok());
    let admin_listen = root.parsed(problems, "admin_listen", ADDRESS, |text| text.parse().ok());
    let policy = root
        .string(problems, "policy")
        .map(|(path, _)| folder.join(path));
    let replicas = read_replicas(problems, &mut root, folder);
    let limits = read_limits(problems, &mut root);
    let timeouts = read_timeouts(problems, &mut root);
    let tls = read_tls(problems, &mut root, folder);
    root.finish(problems);
    Some(Config {
        listen: listen?,
        admin_listen: admin_listen?,
        replicas,
        policy,
        limits,
        timeouts,
        tls,
    })
}

fn read_replicas(
    problems: &mut Problems<'_>,
    root: &mut Section<'_, '_>,
    folder: &Path,
) -> Vec<ReplicaConfig> {
    let tables = root.tables(problems, "replicas");
    if tables.len() > REPLICAS_MAX {
        problems.add(
            tables[0].at(),
            format!("{} replicas, at most {REPLICAS_MAX}", tables.len()),
        );
    }
    let mut names = HashSet::new();
    let mut replicas = Vec::new();
    for mut table in tables {
        table.missing(problems, "name", "a short name such as `replica-0`");
        table.missing(problems, "url", "its base such as `http://127.0.0.1:8101`");
        let name = table.parsed(problems, "name", NAME_EXPECTED, parse_name);
        let authority = table.parsed(problems, "url", URL_EXPECTED, parse_url);
        if let Some(name) = &name
            && !names.insert(name.clone())
        {
            problems.add(
                table.at(),
                format!("a second replica is called `{name}`; names are unique"),
            );
        }
        let engine = table.parsed(problems, "engine", ENGINE_EXPECTED, Engine::named);
        let template = table
            .string(problems, "tokenizer_config")
            .and_then(|(path, at)| {
                let read = read_template(&folder.join(path));
                let template = read.map_err(|why| {
                    problems.add(at, format!("`tokenizer_config`: {path}: {why}"));
                });
                template.ok()
            });
        table.finish(problems);
        if let (Some(name), Some(authority)) = (name, authority) {
            replicas.push(ReplicaConfig {
                engine,
                template,
                ..ReplicaConfig::new(name, authority)
            });
        }
    }
    replicas
}

/// Largest file that a chat template is read from, in bytes; those of real models have up to a few hundred kB.
const TEMPLATE_FILE_BYTES_MAX: u64 = 16 << 20;

/// The chat template of a `tokenizer_config.json`, or of a file that is nothing else.
fn read_template(path: &Path) -> Result<String, String> {
    let bytes = std::fs::metadata(path)
        .map_err(|error| error.to_string())?
        .len();
    if bytes > TEMPLATE_FILE_BYTES_MAX {
        return Err(format!("is larger than {TEMPLATE_FILE_BYTES_MAX} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    if !text.trim_start().starts_with('{') || path.extension().is_none_or(|end| end != "json") {
        return Ok(text);
    }
    let config: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("is no JSON: {error}"))?;
    let template = &config["chat_template"];
    // Some models have several, by name.
    let named = template.as_array().into_iter().flatten();
    let mut default = named.filter(|one| one["name"] == "default");
    let template = template
        .as_str()
        .or(default.next().and_then(|one| one["template"].as_str()));
    let template = template.ok_or("has no `chat_template`; name the file that has it")?;
    Ok(template.to_owned())
}

const ENGINE_EXPECTED: &str = "one of `pinion`, `vllm`, `sglang`, `llama.cpp`";
const NAME_EXPECTED: &str = "1 to 64 letters, digits, `-`, `_` or `.`";
const URL_EXPECTED: &str = "`http://host:port` with no path (TLS to replicas is not supported yet)";

/// A name that is safe as a header value and a metric label.
fn parse_name(text: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    ((1..=64).contains(&text.len()) && text.chars().all(allowed)).then(|| text.to_owned())
}

fn parse_url(text: &str) -> Option<Authority> {
    let rest = text.strip_prefix("http://")?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let authority: Authority = rest.parse().ok()?;
    let plain = !rest.contains('@') && !authority.host().is_empty();
    (plain && authority.port_u16().is_some_and(|port| port > 0)).then_some(authority)
}

fn read_limits(problems: &mut Problems<'_>, root: &mut Section<'_, '_>) -> Limits {
    let mut section = root.section(problems, "limits");
    let default = Limits::default();
    let mut count = |key, max: u64, default: usize| {
        let value = section.integer(problems, key, 1..=max, default as u64);
        usize::try_from(value).unwrap_or(default)
    };
    let limits = Limits {
        in_flight_max: count("in_flight_max", 1_000_000, default.in_flight_max),
        body_bytes_max: count("body_bytes_max", 1 << 30, default.body_bytes_max),
        connections_max: count("connections_max", 1_000_000, default.connections_max),
    };
    section.finish(problems);
    limits
}

fn read_timeouts(problems: &mut Problems<'_>, root: &mut Section<'_, '_>) -> Timeouts {
    let mut section = root.section(problems, "timeouts");
    let default = Timeouts::default();
    let mut seconds = |key, max: u64, default: Duration| {
        Duration::from_secs(section.integer(problems, key, 1..=max, default.as_secs()))
    };
    let timeouts = Timeouts {
        request_head: seconds("request_head_seconds", 3600, default.request_head),
        request_body: seconds("request_body_seconds", 3600, default.request_body),
        connect: seconds("connect_seconds", 60, default.connect),
        first_byte: seconds("first_byte_seconds", 86_400, default.first_byte),
        idle: seconds("idle_seconds", 86_400, default.idle),
        client_stall: seconds("client_stall_seconds", 3600, default.client_stall),
        drain: seconds("drain_seconds", 86_400, default.drain),
    };
    section.finish(problems);
    timeouts
}

fn read_tls(
    problems: &mut Problems<'_>,
    root: &mut Section<'_, '_>,
    folder: &Path,
) -> Option<TlsFiles> {
    let mut section = root.section(problems, "tls");
    if !section.is_present() {
        return None;
    }
    section.missing(problems, "cert", "the path of a PEM certificate chain");
    section.missing(problems, "key", "the path of its PEM private key");
    let cert = section
        .string(problems, "cert")
        .map(|(path, _)| folder.join(path));
    let key = section
        .string(problems, "key")
        .map(|(path, _)| folder.join(path));
    section.finish(problems);
    Some(TlsFiles {
        cert: cert?,
        key: key?,
    })
}
