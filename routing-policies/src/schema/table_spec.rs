//! The one description of the tables that a file may repeat: their keys, which of them have to be there, what each may say and what it
//! is for. The reader checks by it, the JSON Schema is made of it, and two policies are compared by it.

use super::spec::{list, quoted};
use crate::lanes::{CONDITION_BYTES_MAX, LANE_TOKENS_MAX, Lane, Pool, Rule, Wishes};
use crate::models::{Budget, ModelRule, Reasoning, ReasoningField, THINKING_TOKENS_MAX};
use crate::policy::Policy;

/// Most replicas of one pool.
pub(super) const POOL_REPLICAS_MAX: usize = 1_024;
/// Longest name of a pool, lane or rule, in characters.
pub(super) const NAME_CHARS_MAX: usize = 64;
/// Longest name of a model or family, in bytes.
pub(super) const MODEL_NAME_BYTES_MAX: usize = 256;

/// Tables of one name, each of which makes an `R`.
pub(super) struct Table<R: 'static> {
    /// Their name.
    pub(super) name: &'static str,
    /// What they are for, as an editor shows it.
    pub(super) says: &'static str,
    /// Their keys, in the order in which documents show them.
    pub(super) keys: &'static [Column<R>],
    /// Those of a policy.
    pub(super) rows: fn(&Policy) -> &[R],
}

/// A key of such a table.
pub(super) struct Column<R> {
    /// Its name.
    pub(super) name: &'static str,
    /// Whether each table has to have it.
    pub(super) needed: bool,
    /// What it may say.
    pub(super) kind: ColumnKind,
    /// What a row has there, as JSON.
    pub(super) value: fn(&R) -> Option<String>,
}

/// What such a key may say.
#[derive(Clone, Copy)]
pub(super) enum ColumnKind {
    /// A name.
    Name,
    /// Names of replicas.
    Replicas,
    /// A CEL expression.
    Condition,
    /// The name of a model, or a pattern for names.
    Model,
    /// A name that something else knows.
    Text,
    /// One of a few words.
    Words(fn() -> Vec<&'static str>),
    /// `true` or `false`.
    Flag,
    /// A whole number of tokens from `least` to `most`.
    Tokens { least: u32, most: u32 },
}

/// The tables' names, in the order of documents.
pub(super) const TABLES: [&str; 4] = [POOLS.name, LANES.name, RULES.name, MODELS.name];

/// `[[pools]]`.
pub(super) const POOLS: Table<Pool> = Table {
    name: "pools",
    says: "Replicas under one name, by the names that the gateway's configuration gives them.",
    keys: &[
        Column {
            name: "name",
            needed: true,
            kind: ColumnKind::Name,
            value: |pool| Some(quoted(pool.name())),
        },
        Column {
            name: "replicas",
            needed: true,
            kind: ColumnKind::Replicas,
            value: |pool| Some(list(pool.replicas())),
        },
    ],
    rows: |policy| &policy.lanes.pools,
};

/// `[[lanes]]`.
pub(super) const LANES: Table<Lane> = Table {
    name: "lanes",
    says: "Ways that requests take. The first one takes what no rule claims; a lane without a pool may go to all replicas. A lane may switch thinking on or off, with a budget in tokens and what becomes of clients' wishes.",
    keys: &[
        Column {
            name: "name",
            needed: true,
            kind: ColumnKind::Name,
            value: |lane| Some(quoted(&lane.name)),
        },
        Column {
            name: "pool",
            needed: false,
            kind: ColumnKind::Name,
            value: |lane| lane.pool.as_ref().map(|pool| quoted(pool)),
        },
        Column {
            name: "thinking",
            needed: false,
            kind: ColumnKind::Words(|| vec!["on", "off"]),
            value: |lane| {
                lane.thinking
                    .map(|on| quoted(if on { "on" } else { "off" }))
            },
        },
        Column {
            name: "budget",
            needed: false,
            kind: ColumnKind::Tokens {
                least: 0,
                most: LANE_TOKENS_MAX,
            },
            value: |lane| lane.budget.map(|tokens| tokens.to_string()),
        },
        Column {
            name: "budget_max",
            needed: false,
            kind: ColumnKind::Tokens {
                least: 0,
                most: LANE_TOKENS_MAX,
            },
            value: |lane| lane.budget_max.map(|tokens| tokens.to_string()),
        },
        Column {
            name: "effort",
            needed: false,
            kind: ColumnKind::Words(|| vec!["minimal", "low", "medium", "high", "xhigh", "max"]),
            value: |lane| lane.effort.map(|effort| quoted(effort.as_str())),
        },
        Column {
            name: "max_tokens",
            needed: false,
            kind: ColumnKind::Tokens {
                least: 1,
                most: LANE_TOKENS_MAX,
            },
            value: |lane| lane.max_tokens.map(|tokens| tokens.to_string()),
        },
        Column {
            name: "wishes",
            needed: false,
            kind: ColumnKind::Words(|| vec!["honour", "cap", "refuse"]),
            value: |lane| (lane.wishes != Wishes::default()).then(|| quoted(lane.wishes.as_str())),
        },
    ],
    rows: |policy| &policy.lanes.lanes,
};

/// `[[rules]]`.
pub(super) const RULES: Table<Rule> = Table {
    name: "rules",
    says: "Which requests take which lane: the first rule whose condition, a CEL expression over `request`, holds.",
    keys: &[
        Column {
            name: "name",
            needed: true,
            kind: ColumnKind::Name,
            value: |rule| Some(quoted(&rule.name)),
        },
        Column {
            name: "when",
            needed: true,
            kind: ColumnKind::Condition,
            value: |rule| Some(quoted(rule.when.source())),
        },
        Column {
            name: "lane",
            needed: true,
            kind: ColumnKind::Name,
            value: |rule| Some(quoted(&rule.lane)),
        },
    ],
    rows: |policy| &policy.lanes.rules,
};

/// `[[models]]`.
pub(super) const MODELS: Table<ModelRule> = Table {
    name: "models",
    says: "What clients are shown of a model's reasoning, and how much it may think. The first whose name, in which * is any text, fits the model counts.",
    keys: &[
        Column {
            name: "name",
            needed: true,
            kind: ColumnKind::Model,
            value: |rule| Some(quoted(&rule.name)),
        },
        Column {
            name: "family",
            needed: false,
            kind: ColumnKind::Text,
            value: |rule| rule.family.as_ref().map(|family| quoted(family)),
        },
        Column {
            name: "reasoning",
            needed: false,
            kind: ColumnKind::Words(|| words(&Reasoning::WORDS)),
            value: |rule| Some(quoted(rule.reasoning.as_str())),
        },
        Column {
            name: "reasoning_field",
            needed: false,
            kind: ColumnKind::Words(|| words(&ReasoningField::WORDS)),
            value: |rule| Some(quoted(rule.field.as_str())),
        },
        Column {
            name: "thinking",
            needed: false,
            kind: ColumnKind::Flag,
            value: |rule| rule.thinking.map(|thinking| thinking.to_string()),
        },
        Column {
            name: "thinking_tokens_max",
            needed: false,
            kind: ColumnKind::Tokens {
                least: 0,
                most: THINKING_TOKENS_MAX,
            },
            value: |rule| rule.thinking_tokens_max.map(|tokens| tokens.to_string()),
        },
        Column {
            name: "budget",
            needed: false,
            kind: ColumnKind::Words(|| words(&Budget::WORDS)),
            value: |rule| Some(quoted(rule.budget.as_str())),
        },
    ],
    rows: |policy| &policy.models.rules,
};

fn words<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
    words.iter().map(|(word, _)| *word).collect()
}

impl ColumnKind {
    /// In JSON Schema, as far as it can say it.
    pub(super) fn schema(self) -> String {
        match self {
            Self::Name => format!(
                r#"{{ "type": "string", "pattern": "^[A-Za-z0-9._-]{{1,{NAME_CHARS_MAX}}}$" }}"#
            ),
            Self::Replicas => format!(
                r#"{{ "type": "array", "minItems": 1, "maxItems": {POOL_REPLICAS_MAX}, "uniqueItems": true, "items": {{ "type": "string" }} }}"#
            ),
            Self::Condition => {
                format!(r#"{{ "type": "string", "maxLength": {CONDITION_BYTES_MAX} }}"#)
            }
            Self::Model => format!(
                r#"{{ "type": "string", "minLength": 1, "maxLength": {MODEL_NAME_BYTES_MAX} }}"#
            ),
            Self::Text => r#"{ "type": "string" }"#.to_owned(),
            Self::Words(words) => {
                let words: Vec<String> = words().into_iter().map(quoted).collect();
                format!(r#"{{ "enum": [{}] }}"#, words.join(", "))
            }
            Self::Flag => r#"{ "type": "boolean" }"#.to_owned(),
            Self::Tokens { least, most } => {
                format!(r#"{{ "type": "integer", "minimum": {least}, "maximum": {most} }}"#)
            }
        }
    }
}

impl<R> Table<R> {
    /// What a policy has there, as JSON.
    pub(super) fn value(&self, policy: &Policy) -> String {
        let row = |row: &R| {
            let value = |key: &Column<R>| {
                let value = (key.value)(row)?;
                Some(format!("{}: {value}", quoted(key.name)))
            };
            let keys: Vec<String> = self.keys.iter().filter_map(value).collect();
            format!("{{{}}}", keys.join(", "))
        };
        let rows: Vec<String> = (self.rows)(policy).iter().map(row).collect();
        format!("[{}]", rows.join(", "))
    }
}
