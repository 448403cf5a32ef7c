//! Does one piece of the gateway's work again and again, for instruction counts: `count.py` in this folder runs it under callgrind.
//!
//! `instructions CASE SIZE TIMES` prepares the case and does the work TIMES times. Two runs of different TIMES give the cost of one: what
//! preparing takes is the same in both.
#![forbid(unsafe_code)]

use std::{hint::black_box, process::ExitCode};

use bytes::{Bytes, BytesMut};
use chat_wire::{
    JsonPath,
    chunk::Places,
    families::Families,
    reshape::{Change, FieldName, Plan, Reshaper, Shown},
    role::Role,
    scan,
    sse::FrameCutter,
    tally::StreamTally,
};
use routing_policies::{
    Features, PlacementKey, Policy, PrefixSeen, ReplicaId, ReplicaView, Seen, decide,
    placement::{Ask, Block, Settings, State, rank},
    prefix::{self, Message, Scope},
};

/// Blocks of the prompt that is placed: 16,384 tokens at 512 a block.
const BLOCKS: u64 = 32;
/// Tokens of one block.
const BLOCK_TOKENS: u32 = 512;
/// Tokens that each replica's cache holds.
const CACHE_TOKENS: u64 = 1 << 20;
/// Bytes of one message's text, at most.
const MESSAGE_BYTES: usize = 8 * 1_024;
/// Replicas where a turn is placed.
const FLEET: usize = 4;
/// Bytes of a request per token.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Largest size and number of repetitions that make sense here.
const SIZE_MAX: usize = 64 << 20;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| {
        let number = args.get(at)?.parse().ok()?;
        (number <= SIZE_MAX).then_some(number)
    };
    match (args.first().map(String::as_str), number(1), number(2)) {
        (Some("rank"), Some(replicas), Some(times)) => place(replicas, times),
        (Some("turn"), Some(bytes), Some(times)) => turn(bytes, times),
        (Some("scan"), Some(bytes), Some(times)) => read(bytes, times),
        (Some("pass"), Some(events), Some(times)) => stream(events, times, None),
        (Some("split"), Some(events), Some(times)) => stream(events, times, Some("</think>")),
        (Some("answer"), Some(events), Some(times)) => stream(events, times, Some("")),
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

#[expect(
    clippy::print_stderr,
    reason = "a command-line program says here how it is called"
)]
fn usage() -> ExitCode {
    eprintln!(
        "instructions rank REPLICAS TIMES | turn BYTES TIMES | scan BYTES TIMES | pass EVENTS TIMES | split EVENTS TIMES | answer EVENTS TIMES"
    );
    ExitCode::FAILURE
}

/// Orders `replicas` replicas for a prompt of which one of them holds the most.
fn place(replicas: usize, times: usize) {
    let block = |key| Block {
        key,
        tokens: BLOCK_TOKENS,
    };
    let blocks: Vec<Block> = (1..=BLOCKS)
        .map(|i| block(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
        .collect();
    let ids: Vec<ReplicaId> = (0..replicas)
        .map(|i| ReplicaId::of(&format!("replica-{i}")))
        .collect();
    let ask = |held: usize| Ask {
        prompt_tokens: BLOCK_TOKENS * u32::try_from(held).unwrap_or(u32::MAX) + 100,
        blocks: &blocks[..held],
        new_conversation: false,
        home: ids.first().copied(),
        key: PlacementKey::of_body(b"a session"),
    };
    let mut state = State::default();
    for (i, id) in ids.iter().enumerate() {
        state.join(*id, CACHE_TOKENS);
        // Some of the prompt is everywhere, all but its end is at the first.
        let held = if i == 0 { blocks.len() - 1 } else { 2 };
        state.sent(i as u64, *id, &ask(held), 0.0);
    }
    let views: Vec<ReplicaView> = ids
        .iter()
        .map(|id| ReplicaView {
            id: *id,
            ready: true,
            in_flight: 1,
        })
        .collect();
    let settings = Settings::default();
    for _ in 0..times {
        black_box(rank(
            &settings,
            &state,
            &ask(blocks.len()),
            black_box(&views),
            1.0,
        ));
    }
}

/// Takes a stream of `events` apart and looks at each, as the relay does. With a `closer` in the middle it is split too: the first half
/// is reasoning, or nothing of it where the closer is empty.
fn stream(events: usize, times: usize, closer: Option<&str>) {
    let event = |at: usize| {
        let text = match closer {
            Some(closer) if at == events / 2 => closer,
            _ => " word",
        };
        format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"logprobs\":null,\"finish_reason\":null}}]}}\n\n"
        )
    };
    let chunks: Vec<Bytes> = (0..events).map(|at| Bytes::from(event(at))).collect();
    let family = if closer == Some("") {
        "qwen3"
    } else {
        "deepseek-r1"
    };
    let Some(grammar) = Families::built_in()
        .ok()
        .and_then(|families| Some(families.named(family).ok()?.grammar.clone()))
    else {
        return;
    };
    let plan = Plan {
        grammar,
        thinking: None,
        engine_splits: false,
        shown: Shown::Field,
        field: FieldName::ReasoningContent,
    };
    let mut room = BytesMut::new();
    for _ in 0..times {
        let mut cutter = FrameCutter::new();
        let mut tally = StreamTally::default();
        let mut places = Places::default();
        let mut reshaper = closer.map(|_| Reshaper::new(plan.clone()));
        for chunk in &chunks {
            cutter.push(black_box(chunk).clone());
            while let Ok(Some(frame)) = cutter.next_frame() {
                let Some(data) = &frame.data else { continue };
                let Ok(Some(mut seen)) = tally.absorb_placed(data, &mut places) else {
                    continue;
                };
                if let Some(reshaper) = &mut reshaper
                    && reshaper.event(data, &mut seen, &places).change == Change::Spliced
                {
                    room.reserve(frame.raw.len());
                    reshaper.write(data, &mut room);
                    black_box(room.split().freeze());
                }
                black_box(&seen);
            }
        }
    }
}

/// Places a turn of a conversation of `bytes` bytes that returns to its replica, one of four, and learns of its first token and its usage.
fn turn(bytes: usize, times: usize) {
    let policy = Policy::default();
    let body = body(bytes);
    let Ok(scan) = scan::chat(body.as_bytes(), &[]) else {
        return;
    };
    let messages = scan.messages.iter().map(|message| Message {
        bytes: &body.as_bytes()[message.span.clone()],
        is_user: message.role == Role::User,
    });
    let scope = Scope {
        model: "m",
        ..Scope::default()
    };
    let chain = prefix::chain(&scope, b"", messages, policy.prefix.block_bytes);
    let blocks = chain.blocks(BYTES_PER_TOKEN);
    let ids: Vec<ReplicaId> = (0..FLEET)
        .map(|i| ReplicaId::of(&format!("replica-{i}")))
        .collect();
    let view = |id: &ReplicaId| ReplicaView {
        id: *id,
        ready: true,
        in_flight: 1,
    };
    let views: Vec<ReplicaView> = ids.iter().map(view).collect();
    let mut state = State::default();
    for id in &ids {
        state.join(*id, CACHE_TOKENS);
    }
    let request = Features {
        session: None,
        root: Some(chain.root()),
        body: PlacementKey::of_body(b""),
        prompt_tokens: chain.tokens(BYTES_PER_TOKEN),
        blocks: &blocks,
    };
    let mut home = None;
    for number in 0..times {
        let prefix = home.map(|replica| PrefixSeen {
            replica,
            whole: false,
        });
        let seen = Seen { pin: None, prefix };
        let now_s = number as f64;
        let decision = decide(&policy, black_box(&request), seen, &state, &views, now_s);
        let Some(first) = decision.candidates.first().map(|first| first.replica) else {
            return;
        };
        let ask = request.ask(&policy, seen);
        let number = number as u64;
        let believed = state.sent(number, first, &ask, now_s);
        state.first_token(number, first, now_s + 0.1);
        state.delivered(first, &ask, &believed, believed.here_tokens);
        home = Some(first);
    }
}

/// Scans a chat request of about `bytes` bytes and makes its prefix keys.
fn read(bytes: usize, times: usize) {
    let policy = Policy::default();
    let wanted: Vec<_> = policy
        .session
        .body
        .iter()
        .filter_map(|path| JsonPath::parse(path).ok())
        .collect();
    let body = body(bytes);
    for _ in 0..times {
        let body = black_box(body.as_bytes());
        let Ok(scan) = scan::chat(body, &wanted) else {
            return;
        };
        let messages = scan.messages.iter().map(|message| Message {
            bytes: &body[message.span.clone()],
            is_user: message.role == Role::User,
        });
        let scope = Scope {
            model: scan.model.as_deref().unwrap_or_default(),
            ..Scope::default()
        };
        let chain = prefix::chain(&scope, b"", messages, policy.prefix.block_bytes);
        black_box((scan.stream, chain));
    }
}

/// A chat request of about `bytes` bytes, in messages as agents write them, with an escape in each line.
fn body(bytes: usize) -> String {
    let line = "and then the agent looked up the reservation \\\"ZFA04Y\\\" for the third time,\\n";
    let mut text = String::from("{\"model\":\"a-model\",\"messages\":[");
    let mut role = "user";
    while text.len() < bytes {
        let end = (text.len() + MESSAGE_BYTES).min(bytes);
        text.push_str(&format!("{{\"role\":\"{role}\",\"content\":\""));
        while text.len() + line.len() < end {
            text.push_str(line);
        }
        text.push_str("\"},");
        role = if role == "user" { "assistant" } else { "user" };
    }
    text.pop();
    text.push_str("],\"max_tokens\":100,\"temperature\":0.7,\"stream\":true}");
    text
}
