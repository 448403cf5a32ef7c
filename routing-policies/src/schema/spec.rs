//! The one description of the policy file: its sections and keys, what each may say and what it is for. The reader checks files by
//! it, and the JSON Schema that editors complete from is made of it.

use super::names;
use crate::policy::Policy;

/// A table of the file.
pub(super) struct Spec {
    /// Its name.
    pub(super) name: &'static str,
    /// What it is for, as an editor shows it.
    pub(super) says: &'static str,
    /// Its keys, in the order in which documents show them.
    pub(super) keys: &'static [Key],
}

/// A key of a section. Every key is optional.
pub(super) struct Key {
    /// Its name.
    pub(super) name: &'static str,
    /// What it is for, as an editor shows it.
    pub(super) says: &'static str,
    /// What it may say.
    pub(super) kind: Kind,
    /// What a policy has there, as JSON.
    pub(super) value: fn(&Policy) -> String,
}

/// What a key may say.
pub(super) enum Kind {
    /// `true` or `false`.
    Flag,
    /// A whole number, counted in `unit`.
    Count {
        least: u32,
        most: u32,
        unit: &'static str,
    },
    /// A number with at most three decimals; the limits are in thousandths.
    Decimal { least: u32, most: u32 },
    /// A list of different strings: `check` gives each as it is kept, or what is expected in its place.
    Names {
        check: fn(&str) -> Result<String, &'static str>,
        /// The same in JSON Schema, as far as it can say it.
        schema: fn() -> String,
    },
}

/// The version of the format that this build reads.
pub(super) const VERSION: u32 = 1;
/// What the key `version` is for.
pub(super) const VERSION_SAYS: &str = "The format of this file.";
/// Most names in one list of names.
pub(super) const NAMES_MAX: usize = 32;

/// Longest silence before a pin is forgotten, in seconds: a year.
const PIN_TTL_SECONDS_MAX: u32 = 31_536_000;
/// Most pins remembered at once: 100 million of about 100 bytes are 10 GB.
const PINS_MAX_MAX: u32 = 100_000_000;
/// Smallest and largest block, in bytes of the request. A smaller one would make more look-ups than it is worth; a larger one holds
/// more tokens than the smallest cache.
const BLOCK_BYTES: (u32, u32) = (256, 4_096);
/// Smallest and largest cache, in tokens.
const CACHE_TOKENS: (u32, u32) = (1_024, 1_000_000_000);

/// Most requests of one session that a limit may allow: more than a gateway takes of everybody is no limit.
const IN_FLIGHT_PER_SESSION_MAX: u32 = 10_000;
/// Largest limit on a prompt, in bytes: 1 GiB, as much as a gateway can be set to read of one request.
const PROMPT_BYTES_MAX_MAX: u32 = 1 << 30;

/// All sections.
pub(super) const SECTIONS: [&Spec; 5] = [&SESSION, &PREFIX, &PLACEMENT, &LIMITS, &DIFFICULTY];

/// `[session]`.
pub(super) const SESSION: Spec = Spec {
    name: "session",
    says: "How a session is recognised, and how long its pin lasts.",
    keys: &[
        Key {
            name: "headers",
            says: "Request headers that name a session, first one first. No request or trace id, credential, cookie or client address.",
            kind: Kind::Names {
                check: names::header,
                schema: names::header_schema,
            },
            value: |policy| list(&policy.session.headers),
        },
        Key {
            name: "agents",
            says: "Whether the headers that coding agents send of their own accord name a session too.",
            kind: Kind::Flag,
            value: |policy| policy.session.agents.to_string(),
        },
        Key {
            name: "body",
            says: "String fields of the request body that name a session, first one first: names joined by dots.",
            kind: Kind::Names {
                check: names::body_path,
                schema: names::body_path_schema,
            },
            value: |policy| list(&policy.session.body),
        },
        Key {
            name: "infer",
            says: "Whether a conversation without any name is recognised by what it says.",
            kind: Kind::Flag,
            value: |policy| policy.session.infer.to_string(),
        },
        Key {
            name: "pin_ttl_seconds",
            says: "Silence after which a pin is forgotten, in seconds.",
            kind: Kind::Count {
                least: 1,
                most: PIN_TTL_SECONDS_MAX,
                unit: "seconds",
            },
            value: |policy| policy.session.pin_ttl_seconds.to_string(),
        },
        Key {
            name: "pins_max",
            says: "Pins remembered at once, about 100 bytes each; the longest silent ones go first.",
            kind: Kind::Count {
                least: 1,
                most: PINS_MAX_MAX,
                unit: "pins",
            },
            value: |policy| policy.session.pins_max.to_string(),
        },
    ],
};

/// `[prefix]`.
pub(super) const PREFIX: Spec = Spec {
    name: "prefix",
    says: "What the gateway remembers of the prompts that each replica has seen.",
    keys: &[
        Key {
            name: "block_bytes",
            says: "Bytes of a request per remembered block: long messages are cut into pieces of this size.",
            kind: Kind::Count {
                least: BLOCK_BYTES.0,
                most: BLOCK_BYTES.1,
                unit: "bytes",
            },
            value: |policy| policy.prefix.block_bytes.to_string(),
        },
        Key {
            name: "cache_tokens",
            says: "Tokens that a replica's prefix cache holds, for replicas that do not say.",
            kind: Kind::Count {
                least: CACHE_TOKENS.0,
                most: CACHE_TOKENS.1,
                unit: "tokens",
            },
            value: |policy| policy.prefix.cache_tokens.to_string(),
        },
        Key {
            name: "canonical_tools",
            says: "Whether the keys of the objects in `tools` go out in one order and without white space, so that clients who write one tool differently share its prefix. The names of a schema's `properties` stay.",
            kind: Kind::Flag,
            value: |policy| policy.prefix.canonical_tools.to_string(),
        },
        Key {
            name: "sort_properties",
            says: "Whether `canonical_tools` puts the names of a schema's `properties` in order too. Models write arguments in that order.",
            kind: Kind::Flag,
            value: |policy| policy.prefix.sort_properties.to_string(),
        },
        Key {
            name: "effort_in_head",
            says: "Models, by the names that requests ask for, whose prompt begins with the reasoning effort, beyond the families that are known for it: another effort is another prefix there.",
            kind: Kind::Names {
                check: names::model,
                schema: names::model_schema,
            },
            value: |policy| list(&policy.prefix.effort_in_head),
        },
    ],
};

/// `[placement]`.
pub(super) const PLACEMENT: Spec = Spec {
    name: "placement",
    says: "What the choice of a replica weighs. The unit is the prefill of a request of mean size.",
    keys: &[
        Key {
            name: "crowding",
            says: "Requests that are taken to come to a replica while it works on one of mean size, and to be delayed by extra work there. 0 looks at the request's own first token only.",
            kind: Kind::Decimal {
                least: 0,
                most: 100_000,
            },
            value: |policy| decimal(policy.placement.settings.crowding),
        },
        Key {
            name: "in_flight_weight",
            says: "What a request in flight counts as waiting work, as a share of a request of mean size.",
            kind: Kind::Decimal {
                least: 0,
                most: 10_000,
            },
            value: |policy| decimal(policy.placement.settings.in_flight),
        },
        Key {
            name: "common_share",
            says: "Share of new conversations from which on a block counts as common, and no longer draws requests to one replica.",
            kind: Kind::Decimal {
                least: 1,
                most: 1_000,
            },
            value: |policy| decimal(policy.placement.settings.common_share),
        },
        Key {
            name: "stay",
            says: "By how much another replica must be cheaper than the one that served the session last, as a share of a request of mean size.",
            kind: Kind::Decimal {
                least: 0,
                most: 100_000,
            },
            value: |policy| decimal(policy.placement.settings.stay),
        },
    ],
};

/// `[difficulty]`.
pub(super) const DIFFICULTY: Spec = Spec {
    name: "difficulty",
    says: "How rules see the difficulty of a turn.",
    keys: &[Key {
        name: "margin",
        says: "A session's rules go on seeing the difficulty of an earlier turn while the last one's differs by less than this, so that a session does not change lanes to and fro. 0.0 judges each turn alone.",
        kind: Kind::Decimal {
            least: 0,
            most: 1_000,
        },
        value: |policy| format!("{:?}", policy.difficulty.margin),
    }],
};

/// `[limits]`.
pub(super) const LIMITS: Spec = Spec {
    name: "limits",
    says: "What the gateway refuses before it goes to any replica. 0 is no limit.",
    keys: &[
        Key {
            name: "in_flight_per_session",
            says: "Requests of one session that may be in flight at a time, per gateway; one more is a 429 with Retry-After. Only sessions that something names are counted. 0 is no limit.",
            kind: Kind::Count {
                least: 0,
                most: IN_FLIGHT_PER_SESSION_MAX,
                unit: "requests",
            },
            value: |policy| policy.limits.in_flight_per_session.to_string(),
        },
        Key {
            name: "prompt_bytes_max",
            says: "Bytes that a request's tools and messages may have together, as the client wrote them; a longer prompt is a 413 that tells both numbers. 0 is no limit.",
            kind: Kind::Count {
                least: 0,
                most: PROMPT_BYTES_MAX_MAX,
                unit: "bytes",
            },
            value: |policy| policy.limits.prompt_bytes_max.to_string(),
        },
    ],
};

/// Decimals of the file are kept in thousandths while they are checked.
pub(super) const THOUSAND: f64 = 1_000.0;

pub(super) fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("[{}]", quoted.join(", "))
}

fn decimal(value: f64) -> String {
    format!("{value:?}")
}

/// `text` as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
