//! `gateway policy explain`.

use std::path::Path;

use chat_wire::scan::{self, ChatScan};
use routing_policies::difficulty::{self, Contribution, Difficulty};
use routing_policies::explain::{Explanation, Remembered, Turn};
use routing_policies::lanes::{LaneChoice, Past, Pool, Settled, difficulty_of, difficulty_step};
use routing_policies::placement::Ranked;
use routing_policies::session::{SessionSource, identify};
use routing_policies::{Policy, ReplicaId, ReplicaView};
use serde::Deserialize;

use super::table::table;
use crate::chat::lane::{facts, wish};
use crate::chat::prompt::{built_in, paths, prompt};
use crate::chat::relay::X_PINION_LANE;
use crate::chat::turn::{Said, said};
use crate::cli::Explain;

/// Bytes of a request per token, before a model's own ratio is known.
const BYTES_PER_TOKEN: f64 = 4.0;
const MS_PER_S: f64 = 1_000.0;
/// Parts of the difficulty that are shown, greatest first, in log-odds.
const PARTS_SHOWN: usize = 6;

/// What `/state` prints, as far as a decision looks at it.
#[derive(Deserialize)]
struct FleetState {
    replicas: Vec<ReplicaState>,
}

#[derive(Clone, Deserialize)]
struct ReplicaState {
    name: String,
    ready: bool,
    in_flight: u32,
    /// Where the replica says how much it caches.
    #[serde(default)]
    cache_tokens: Option<u64>,
}

/// Where the request would go, what each replica would cost, and what that rests on.
pub(super) fn run(options: &Explain) -> Result<String, String> {
    let policy = match &options.policy {
        Some(file) => super::files::load(&[file])?.swap_remove(0).policy,
        None => Policy::default(),
    };
    let replicas = fleet(options)?;
    let cache = |replica: &ReplicaState| {
        let tokens = replica.cache_tokens;
        let tokens = tokens.unwrap_or(u64::from(policy.prefix.cache_tokens));
        (ReplicaId::of(&replica.name), tokens)
    };
    let mut remembered = Remembered::new(replicas.iter().map(cache));
    for (name, file) in &options.seen {
        if !replicas.iter().any(|replica| replica.name == *name) {
            let known: Vec<&str> = replicas
                .iter()
                .map(|replica| replica.name.as_str())
                .collect();
            return Err(format!(
                "--seen {name}={}: no replica is called so; here are {}",
                file.display(),
                known.join(", ")
            ));
        }
        let Understood { turn, .. } = read(&policy, file, &options.headers)?;
        remembered.answered(&policy, &turn, ReplicaId::of(name));
    }
    let understood = read(&policy, &options.request, &options.headers)?;
    let Understood {
        turn,
        source,
        scan,
        said,
        body,
    } = understood;
    let spoken = difficulty::Turn {
        text: &said.last,
        before: &said.before,
    };
    let score = Difficulty::built_in().score(&spoken);
    let view = |replica: &ReplicaState| ReplicaView {
        id: ReplicaId::of(&replica.name),
        ready: replica.ready,
        in_flight: replica.in_flight,
    };
    let facts = facts(&scan, turn.prompt_tokens, turn.session.is_some());
    let as_rules_see = difficulty_of(difficulty_step(score));
    let choice = policy
        .lanes
        .choose(&facts, header(&options.headers), || as_rules_see);
    let named = header(&options.headers)(X_PINION_LANE.as_str());
    let named = named.map(String::from_utf8_lossy);
    let wish = wish(&body, &scan, None, named.as_deref()).map_err(|why| why.to_string())?;
    let settled = choice.map(|choice| policy.lanes.settle(&choice, &wish, &Past::default()));
    let settled = settled.transpose().map_err(|why| why.to_string())?;
    let pool = settled.and_then(|settled| settled.pool);
    let views: Vec<ReplicaView> = replicas
        .iter()
        .map(view)
        .filter(|view| pool.is_none_or(|pool| pool.has(view.id)))
        .collect();
    let why = remembered.explain(&policy, &turn, &views);
    let both = choice.zip(settled);
    let lane = both.map_or(String::new(), |(choice, to)| lane_words(&choice, &to));
    let lane = limit_words(&policy, &turn) + &lane + &judged(&spoken, score);
    Ok(lane + &told(&policy, &replicas, pool, &turn, source, &why))
}

/// The replicas of `--state`, else as many idle ones as asked for.
fn fleet(options: &Explain) -> Result<Vec<ReplicaState>, String> {
    let Some(file) = &options.state else {
        let idle = |index| ReplicaState {
            name: format!("replica-{index}"),
            ready: true,
            in_flight: 0,
            cache_tokens: None,
        };
        return Ok((0..options.replicas).map(idle).collect());
    };
    let name = file.display();
    let text = bytes(file)?;
    let state: FleetState = serde_json::from_slice(&text).map_err(|error| {
        format!("{name}: {error}; expected what a gateway prints at /state on its admin address")
    })?;
    Ok(state.replicas)
}

fn bytes(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{}: cannot be read: {error}", file.display()))
}

/// One request.
struct Understood {
    turn: Turn,
    source: Option<SessionSource>,
    scan: ChatScan,
    said: Said,
    body: Vec<u8>,
}

/// A request's body, understood as the gateway understands it, with `headers` as they would come with it.
fn read(policy: &Policy, file: &Path, headers: &[(String, String)]) -> Result<Understood, String> {
    let name = file.display();
    let body = bytes(file)?;
    let paths =
        paths(policy).map_err(|(path, error)| format!("session.body: `{path}`: {error}"))?;
    let scan = scan::chat(&body, &paths).map_err(|error| {
        format!("{name}: {error}; expected the body of a chat completion request")
    })?;
    let model = scan.model.as_deref().unwrap_or_default();
    let header = header(headers);
    let session = identify(&policy.session, "", model, header, &scan.strings).session;
    let chain = prompt(policy, "", &scan, &body, built_in(model)).chain;
    let turn = Turn {
        session: session.map(|(key, _)| key),
        prompt_tokens: chain.tokens(BYTES_PER_TOKEN),
        blocks: chain.blocks(BYTES_PER_TOKEN),
        chain,
    };
    let said = said(&body, &scan);
    Ok(Understood {
        turn,
        source: session.map(|(_, source)| source),
        scan,
        said,
        body,
    })
}

/// Looks headers up by their lower-case names.
fn header<'h>(headers: &'h [(String, String)]) -> impl Fn(&str) -> Option<&'h [u8]> {
    |name: &str| {
        let found = headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_bytes())
    }
}

/// What the policy's limits say to the request; nothing where there are none.
fn limit_words(policy: &Policy, turn: &Turn) -> String {
    let limits = policy.limits;
    let (bytes, most) = (turn.chain.bytes(), limits.prompt_bytes_max);
    let mut text = match most {
        0 => String::new(),
        most if bytes > u64::from(most) => format!(
            "refused: its tools and messages are {bytes} bytes, more than `limits.prompt_bytes_max` = {most}; else it would go so:\n"
        ),
        most => format!("limit: {bytes} of {most} bytes of tools and messages\n"),
    };
    text += &match (limits.in_flight_per_session, turn.session) {
        (0, _) => String::new(),
        (most, Some(_)) => {
            format!("limit: {most} requests of this session at a time, at each gateway\n")
        }
        (_, None) => "limit: not counted by session, as nothing names one\n".to_owned(),
    };
    text
}

/// The lane, what it says of thinking, its pool, and why it is this one.
fn lane_words(choice: &LaneChoice<'_>, to: &Settled<'_>) -> String {
    let LaneChoice { rule, failed, .. } = choice;
    let (lane, pool) = (to.lane, to.pool);
    let why = rule.map_or(
        "no rule holds, so it is the first lane".to_owned(),
        |rule| format!("by the rule {}: {}", rule.name, rule.when.source()),
    );
    let pool = pool.map_or("all replicas".to_owned(), |pool| {
        format!("{} ({})", pool.name(), pool.replicas().join(", "))
    });
    let failed = failed.map_or(String::new(), |rule| {
        format!("rule that cannot be worked out: {}\n", rule.name)
    });
    let why = if lane.name == choice.lane.name && !to.capped {
        why
    } else {
        format!(
            "{} (rules: {}, {why})",
            to.reason.as_str(),
            choice.lane.name
        )
    };
    let thinking = to.thinking.map_or(String::new(), |on| {
        let budget = to.budget.map(|tokens| format!(", at most {tokens} tokens"));
        let effort = to.effort.map(|effort| format!(", effort {effort}"));
        let more = [budget, effort].map(Option::unwrap_or_default).concat();
        format!("thinking: {}{more}\n", if on { "on" } else { "off" })
    });
    format!(
        "lane: {}, {why}\n{thinking}{failed}pool: {pool}\n",
        lane.name
    )
}

/// How difficult the turn is, and what speaks for and against thinking.
fn judged(turn: &difficulty::Turn<'_>, score: f64) -> String {
    let parts = Difficulty::built_in().explain(turn);
    let part = |part: &Contribution| format!("{} {:+.2}", part.what, part.log_odds);
    let parts: Vec<String> = parts.iter().take(PARTS_SHOWN).map(part).collect();
    format!("difficulty: {score:.3}, mostly by {}\n", parts.join(", "))
}

/// For people: whose turn it is, what was seen of it, the reason, and a table of costs.
fn told(
    policy: &Policy,
    replicas: &[ReplicaState],
    pool: Option<&Pool>,
    turn: &Turn,
    source: Option<SessionSource>,
    why: &Explanation,
) -> String {
    let name = |id: ReplicaId| {
        let found = replicas
            .iter()
            .find(|replica| ReplicaId::of(&replica.name) == id);
        found.map_or("?", |replica| replica.name.as_str())
    };
    let session = match source {
        Some(source) => format!("named by a {}", source_words(source)),
        None if policy.session.infer => "not named; recognised by what it says".to_owned(),
        None => "not named, and the policy does not infer one".to_owned(),
    };
    let pin = why.pin.map_or("none", name);
    let messages = turn.chain.keys().len();
    let prefix = why.prefix.map_or("nothing".to_owned(), |(depth, replica)| {
        format!(
            "the first {depth} of {messages} messages, at {}",
            name(replica)
        )
    });
    let first = why
        .order
        .first()
        .map_or("nobody", |first| name(first.replica));
    let head = [
        "replica",
        "holds tokens",
        "wait ms",
        "prefill ms",
        "crowding ms",
        "in flight ms",
        "leave ms",
        "total ms",
    ];
    let rows: Vec<Vec<String>> = why
        .order
        .iter()
        .map(|ranked| cells(name(ranked.replica), ranked))
        .collect();
    let mut text = format!(
        "session: {session}\npin: {pin}\nseen before: {prefix}\nprompt: about {} tokens\ngoes to: {first}\nreason: {}, {}\n\n{}",
        turn.prompt_tokens,
        why.reason.as_str(),
        why.reason.sentence(),
        table(&head, &rows)
    );
    let not_ready: Vec<&str> = replicas
        .iter()
        .filter(|replica| !replica.ready)
        .filter(|replica| pool.is_none_or(|pool| pool.has(ReplicaId::of(&replica.name))))
        .map(|replica| replica.name.as_str())
        .collect();
    if !not_ready.is_empty() {
        text.push_str(&format!("\nnot ready: {}\n", not_ready.join(", ")));
    }
    text
}

fn source_words(source: SessionSource) -> &'static str {
    match source {
        SessionSource::Header => "header",
        SessionSource::Agent => "coding agent's header",
        SessionSource::Body => "field of the body",
    }
}

fn cells(name: &str, ranked: &Ranked) -> Vec<String> {
    let cost = &ranked.cost;
    let parts = [
        cost.wait_s,
        cost.prefill_s,
        cost.crowding_s,
        cost.in_flight_s,
        cost.leave_s,
        cost.total_s(),
    ];
    let mut cells = vec![name.to_owned(), ranked.held_tokens.to_string()];
    cells.extend(parts.map(|seconds| format!("{:.1}", seconds * MS_PER_S)));
    cells
}
