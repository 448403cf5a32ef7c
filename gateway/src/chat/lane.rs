//! Which lane a request takes, by the policy's rules.

use http::HeaderValue;
use routing_policies::lanes::{Facts, LaneChoice};

use super::parse::ChatCall;
use super::place::model_key;
use crate::state::Known;

/// The lane; `None` where the policy has none.
pub(super) fn lane<'c>(known: &Known, call: &'c ChatCall) -> Option<LaneChoice<'c>> {
    let lanes = &call.policy.policy().lanes;
    if lanes.lanes.is_empty() {
        return None;
    }
    let bytes_per_token = known.beliefs.bytes_per_token(model_key(call));
    let facts = Facts {
        prompt_tokens: call.chain.tokens(bytes_per_token),
        session: call.session.is_some(),
        ..call.scan_facts()
    };
    let header = |name: &str| call.headers.get(name).map(HeaderValue::as_bytes);
    let choice = lanes.choose(&facts, header)?;
    if let Some(rule) = choice.failed {
        known.metrics.policy_rule_error();
        call.policy.on_rule_error(rule);
    }
    Some(choice)
}
