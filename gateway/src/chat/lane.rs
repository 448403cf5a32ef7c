//! Which lane a request takes, by the policy's rules.

use chat_wire::scan::ChatScan;
use http::HeaderValue;
use routing_policies::difficulty::{Difficulty, Turn};
use routing_policies::lanes::{Facts, LaneChoice};

use super::parse::ChatCall;
use super::place::model_key;
use super::turn::{Said, said};
use crate::state::Known;

/// The lane; `None` where the policy has none.
pub(super) fn lane<'c>(known: &Known, call: &'c ChatCall) -> Option<LaneChoice<'c>> {
    let lanes = &call.policy.policy().lanes;
    if lanes.lanes.is_empty() {
        return None;
    }
    let bytes_per_token = known.beliefs.bytes_per_token(model_key(call));
    let prompt_tokens = call.chain.tokens(bytes_per_token);
    let facts = facts(&call.scan, prompt_tokens, call.session.is_some());
    let header = |name: &str| call.headers.get(name).map(HeaderValue::as_bytes);
    let difficulty = || {
        let Said { last, before } = said(&call.body, &call.scan);
        Difficulty::built_in().score(&Turn {
            text: &last,
            before: &before,
        })
    };
    let choice = lanes.choose(&facts, header, difficulty)?;
    if let Some(rule) = choice.failed {
        known.metrics.policy_rule_error();
        call.policy.on_rule_error(rule);
    }
    Some(choice)
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
