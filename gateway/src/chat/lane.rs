//! Which lane a request takes: by the client's wish, the policy's rules and what its session did before.

use std::cell::Cell;
use std::sync::Arc;

use chat_wire::families::{Family, Switch};
use chat_wire::role::Role;
use chat_wire::scan::{ChatScan, ThinkingScan};
use chat_wire::thinking;
use http::HeaderValue;
use routing_policies::difficulty::{Difficulty, Turn};
use routing_policies::lanes::{
    Effort, Facts, NO_LIMIT, Past, Refused, Settled, Wish, difficulty_of, difficulty_step, steady,
};

use super::parse::ChatCall;
use super::place::model_key;
use super::prompt::writes_effort_first;
use super::relay::X_PINION_LANE;
use super::turn::{Said, said};
use crate::failure::Failure;
use crate::metrics::WishResult;
use crate::state::Known;
use crate::state::lanes::Held;
use crate::state::policy::PolicyInUse;

/// The lane; `None` where the policy has none.
///
/// # Errors
/// The lane does not take the client's wish, or it cannot be understood.
pub(super) fn lane<'p>(
    known: &Known,
    policy: &'p PolicyInUse,
    call: &ChatCall,
) -> Result<Option<Settled<'p>>, Failure> {
    let lanes = &policy.policy().lanes;
    if lanes.lanes.is_empty() {
        return Ok(None);
    }
    let bytes_per_token = known.beliefs.bytes_per_token(model_key(call));
    let prompt_tokens = call.chain.tokens(bytes_per_token);
    let facts = facts(&call.scan, prompt_tokens, call.session.is_some());
    let header = |name: &str| call.headers.get(name).map(HeaderValue::as_bytes);
    let key = session_key(policy, call);
    let held = known.lanes.get(key);
    let seen = Cell::new(held.and_then(|held| held.difficulty));
    let kept = Cell::new(false);
    let difficulty = || {
        let now = difficulty_step(judge(&call.body, &call.scan));
        known.metrics.difficulty(difficulty_of(now));
        let (step, is_kept) = steady(now, seen.get(), policy.policy().difficulty.margin);
        seen.set(Some(step));
        kept.set(is_kept);
        difficulty_of(step)
    };
    let Some(choice) = lanes.choose(&facts, header, difficulty) else {
        return Ok(None);
    };
    if let Some(rule) = choice.failed {
        known.metrics.policy_rule_error();
        policy.on_rule_error(rule);
    }
    let model = call.scan.model.as_deref();
    let family = family(known, policy, model);
    let named = header(X_PINION_LANE.as_str()).map(String::from_utf8_lossy);
    let wish = wish(&call.body, &call.scan, family.as_deref(), named.as_deref())?;
    let past = Past {
        lane: held.map(|held| held.lane),
        tool_loop: is_tool_loop(&call.scan),
        effort_in_head: writes_effort_first(
            policy.policy(),
            model.unwrap_or_default(),
            family.as_deref(),
        ),
        steady: kept.get(),
    };
    let settled = lanes.settle(&choice, &wish, &past);
    if wish != Wish::default() {
        known.metrics.wish(match &settled {
            Ok(settled) if settled.capped => WishResult::Capped,
            Ok(_) => WishResult::Followed,
            Err(_) => WishResult::Refused,
        });
    }
    let settled = settled.map_err(refused)?;
    known.metrics.lane(&settled.lane.name, settled.reason);
    let (lane, difficulty) = (settled.index, seen.get());
    known.lanes.put(key, Held { lane, difficulty });
    Ok(Some(settled))
}

fn refused(refused: Refused) -> Failure {
    let message = refused.to_string();
    match refused {
        Refused::NoLane(..) => Failure::BadWish { message },
        _ => Failure::WishRefused { message },
    }
}

/// How much thinking the user's last turn is worth.
fn judge(body: &[u8], scan: &ChatScan) -> f64 {
    let Said { last, before } = said(body, scan);
    Difficulty::built_in().score(&Turn {
        text: &last,
        before: &before,
    })
}

/// The session by its name, else the conversation by its beginning; another policy has other lanes.
fn session_key(policy: &PolicyInUse, call: &ChatCall) -> u128 {
    let root = || u128::from(call.chain.root().get());
    let key = call.session.map_or_else(root, |session| session.get());
    key ^ (u128::from(policy.fingerprint()) << 64)
}

/// The family of a model before it is known which replica will answer.
fn family(known: &Known, policy: &PolicyInUse, model: Option<&str>) -> Option<Arc<Family>> {
    let only = || {
        known
            .fleet
            .with_models(|models| models.only().map(str::to_owned))
    };
    let name = model.map(str::to_owned).or_else(only).unwrap_or_default();
    let facts = policy.model(&name);
    let by_template = || {
        let replicas = known.fleet.replicas().iter();
        let serving = replicas.filter(|replica| {
            let index = replica.index();
            known
                .fleet
                .with_models(|models| models.may_serve(index, model))
        });
        serving
            .filter_map(|replica| policy.models().at(replica.index()))
            .next()
            .cloned()
    };
    let told = facts.told.clone().or_else(by_template);
    told.or_else(|| facts.by_name.clone())
}

fn is_tool_loop(scan: &ChatScan) -> bool {
    let last = scan.messages.last();
    last.is_some_and(|message| message.role == Role::Tool)
}

/// What the client asks for, in whichever words.
///
/// # Errors
/// A budget or an effort that is none.
pub(crate) fn wish<'w>(
    body: &[u8],
    scan: &ChatScan,
    family: Option<&Family>,
    lane: Option<&'w str>,
) -> Result<Wish<'w>, Failure> {
    let asked = &scan.thinking;
    let budget = thinking::asked(asked).map_err(|error| Failure::BadBudget {
        field: error.field,
        message: error.to_string(),
    })?;
    let endless = !asked.budgets.is_empty() && budget.is_none();
    let effort = asked.effort_word().map(|word| {
        Effort::named(word).ok_or_else(|| Failure::BadWish {
            message: format!(
                "reasoning_effort is `{word}`, expected one of {}",
                Effort::WORDS
                    .map(|(word, _)| format!("`{word}`"))
                    .join(", ")
            ),
        })
    });
    let by_field = by_field(asked, family);
    // As Qwen3 has it: a word in the text does not switch on what a field has switched off.
    let thinking = match by_field {
        Some(false) => Some(false),
        by_field => in_text(body, scan).or(by_field),
    };
    Ok(Wish {
        lane,
        thinking,
        budget: budget.or(endless.then_some(NO_LIMIT)),
        effort: effort.transpose()?,
    })
}

/// Thinking or none by the family's own switch, else by any that is known, else by a field.
fn by_field(asked: &ThinkingScan, family: Option<&Family>) -> Option<bool> {
    let any = Switch {
        names: ["enable_thinking", "thinking", "thinking_mode"]
            .map(str::to_owned)
            .into(),
        on: Some("enabled".to_owned()),
        off: Some("disabled".to_owned()),
    };
    let own = family.and_then(|family| family.switch.wish(asked));
    let by_any = any.wish(asked);
    let explicit = own.filter(|(_, by_switch)| *by_switch).or(by_any);
    explicit.map(|(thinks, _)| thinks)
}

/// The word for it in the user's last message.
fn in_text(body: &[u8], scan: &ChatScan) -> Option<bool> {
    let users = scan.messages.iter().rev();
    let mut users = users.filter(|message| message.role == Role::User);
    let last = body.get(users.next()?.span.clone())?;
    // A look at the bytes first: almost no message has such a word.
    let raw = std::str::from_utf8(last).ok()?;
    let maybe = ["/think", "/no_think", "/nothink"]
        .iter()
        .any(|word| raw.contains(word));
    maybe.then(|| thinking::in_text(&said(body, scan).last))?
}

/// What rules may ask of a request.
pub(crate) fn facts(scan: &ChatScan, prompt_tokens: u32, session: bool) -> Facts<'_> {
    Facts {
        model: scan.model.as_deref().unwrap_or_default(),
        stream: scan.stream,
        prompt_tokens,
        max_tokens: scan.max_tokens.unwrap_or(0),
        messages: scan.messages.len(),
        has_tools: scan.tools.is_some(),
        session,
    }
}
