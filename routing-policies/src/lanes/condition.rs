//! A rule's condition: a CEL expression over the request that is true or false.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use cel::objects::{Key, Value};
use cel::{Context, Env, Program};

use super::Facts;
use super::check::{Fault, Needs, check};

/// Longest condition, in bytes.
pub const CONDITION_BYTES_MAX: usize = 1_024;

/// CEL's own operators and functions.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A condition whose types are checked. Two are equal when they are written alike.
#[derive(Clone)]
pub struct Condition {
    source: Arc<str>,
    program: Arc<Program>,
    needs: Arc<Needs>,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.source.fmt(f)
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Condition {
    /// Reads a condition and checks its names and types.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its byte in `source`.
    pub(crate) fn compile(source: &str) -> Result<Self, Vec<Fault>> {
        if source.len() > CONDITION_BYTES_MAX {
            let message = format!(
                "is {} bytes long, expected at most {CONDITION_BYTES_MAX}; split it into several rules",
                source.len()
            );
            return Err(vec![Fault { at: 0, message }]);
        }
        let program = ENVIRONMENT.compile(source).map_err(|errors| {
            let errors = errors.errors.iter();
            errors
                .map(|error| Fault::of(error, source))
                .collect::<Vec<_>>()
        })?;
        let needs = check(&program)?;
        Ok(Self {
            source: source.into(),
            program: Arc::new(program),
            needs: Arc::new(needs),
        })
    }

    /// As it is written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it asks how difficult the turn is.
    pub(super) fn asks_difficulty(&self) -> bool {
        self.needs.difficulty
    }

    /// Whether it holds; `None` where it cannot be worked out (a division by zero, a number past 64 bits).
    pub(super) fn holds(&self, request: &Request) -> Option<bool> {
        match self.program.execute(&request.0) {
            Ok(Value::Bool(holds)) => Some(holds),
            _ => None,
        }
    }
}

/// A request as conditions see it.
pub(super) struct Request(Context<'static, 'static>);

impl Request {
    /// With the headers that the conditions mention; one that the request lacks, or that is no text, is "".
    pub(super) fn new<'c, 'h>(
        facts: &Facts<'_>,
        conditions: impl Iterator<Item = &'c Condition>,
        header: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> Self {
        let text = |name: &str| {
            let value = header(name).and_then(|value| std::str::from_utf8(value).ok());
            value.unwrap_or_default().to_owned()
        };
        let names: BTreeSet<&String> = conditions
            .flat_map(|when| when.needs.headers.iter())
            .collect();
        let headers: HashMap<Key, Value> = names
            .into_iter()
            .map(|name| (name.clone().into(), text(name).into()))
            .collect();
        let fields: [(&str, Value); 8] = [
            ("model", facts.model.into()),
            ("stream", facts.stream.into()),
            ("prompt_tokens", i64::from(facts.prompt_tokens).into()),
            ("max_tokens", whole(facts.max_tokens).into()),
            ("messages", whole(facts.messages).into()),
            ("has_tools", facts.has_tools.into()),
            ("session", facts.session.into()),
            ("header", Value::Map(headers.into())),
        ];
        let fields: HashMap<Key, Value> = fields
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect();
        let mut context = Context::with_env(ENVIRONMENT.clone());
        context.add_variable_from_value("request", Value::Map(fields.into()));
        Self(context)
    }

    /// Tells conditions how difficult the turn is.
    pub(super) fn with_difficulty(&mut self, difficulty: f64) {
        self.0.add_variable_from_value("difficulty", difficulty);
    }
}

/// CEL counts in 64 bits with a sign.
fn whole(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
