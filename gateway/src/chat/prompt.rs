//! What of a request is the prompt that an engine renders, as far as its cache goes: its keys and blocks, and its tools in the order that
//! the policy wants.

use std::sync::LazyLock;

use bytes::Bytes;
use chat_wire::families::{Families, Family};
use chat_wire::order::in_order;
use chat_wire::role::Role;
use chat_wire::scan::ChatScan;
use chat_wire::{JsonPath, PathError};
use routing_policies::Policy;
use routing_policies::prefix::{Chain, Message, Scope, chain};

/// Fields that set the reasoning effort, first one first: an explicit template argument beats the rest.
const EFFORT_PATHS: [&str; 3] = [
    "chat_template_kwargs.reasoning_effort",
    "reasoning_effort",
    "reasoning.effort",
];

/// The families that come with the wire; none where its table is broken, which its own test shows.
static FAMILIES: LazyLock<Option<Families>> = LazyLock::new(|| Families::built_in().ok());

/// The family that a model's name tells, by the table that comes with the wire.
pub(crate) fn built_in(model: &str) -> Option<&'static Family> {
    FAMILIES.as_ref()?.of_model(model)
}

/// The prompt of a request.
#[derive(Debug)]
pub(crate) struct Prompt {
    /// Its keys and blocks.
    pub(crate) chain: Chain,
    /// What goes out in place of the client's tools, where that is another text.
    pub(crate) tools: Option<Bytes>,
}

/// The strings of a body that a request is understood by: those that may name its session, in the policy's order, and behind them those
/// that [`prompt`] looks at.
///
/// # Errors
/// A path of the policy that is none, with the path.
pub(crate) fn paths(policy: &Policy) -> Result<Vec<JsonPath>, (String, PathError)> {
    let of_policy = policy.session.body.iter().map(String::as_str);
    let path = |text: &str| JsonPath::parse(text).map_err(|error| (text.to_owned(), error));
    of_policy.chain(EFFORT_PATHS).map(path).collect()
}

/// The prompt of a request whose `body` was scanned for [`paths`].
///
/// `family` is that of its model, where it is known.
pub(crate) fn prompt(
    policy: &Policy,
    tenant: &str,
    scan: &ChatScan,
    body: &[u8],
    family: Option<&Family>,
) -> Prompt {
    let efforts = scan.strings.get(policy.session.body.len()..);
    let effort = efforts.into_iter().flatten().flatten().next();
    let model = scan.model.as_deref().unwrap_or_default();
    let effort = effort.map(String::as_str);
    let effort = effort.filter(|_| writes_effort_first(policy, model, family));
    prompt_with(policy, tenant, scan, body, effort)
}

/// [`prompt`] that begins with this effort.
pub(crate) fn prompt_with(
    policy: &Policy,
    tenant: &str,
    scan: &ChatScan,
    body: &[u8],
    effort: Option<&str>,
) -> Prompt {
    let written = scan.tools.clone().map_or(&b""[..], |span| &body[span]);
    let tools = ordered(policy, written).filter(|tools| tools != written);
    let scope = Scope {
        tenant,
        model: scan.model.as_deref().unwrap_or_default(),
        salt: scan.cache_salt.as_deref(),
        effort,
    };
    let messages = scan.messages.iter().map(|message| Message {
        bytes: &body[message.span.clone()],
        is_user: message.role == Role::User,
    });
    let head = tools.as_deref().unwrap_or(written);
    Prompt {
        chain: chain(&scope, head, messages, policy.prefix.block_bytes),
        tools: tools.map(Bytes::from),
    }
}

fn ordered(policy: &Policy, tools: &[u8]) -> Option<Vec<u8>> {
    let wanted = policy.prefix.canonical_tools && !tools.is_empty();
    wanted.then(|| in_order(tools, policy.prefix.sort_properties))?
}

/// Whether the model's template writes the effort at the head of the prompt, so that another effort shares nothing.
pub(super) fn writes_effort_first(policy: &Policy, model: &str, family: Option<&Family>) -> bool {
    let listed = policy.prefix.effort_in_head.iter();
    listed.into_iter().any(|name| name == model)
        || family.is_some_and(|family| family.effort_in_head)
}
