//! What a request says about thinking, put into the words that its replica reads: the template's switch, the engine's budget, and what of
//! earlier reasoning goes along. All of it by splices.

mod continued;
mod history;

use std::fmt;

use crate::families::Switch;
use crate::scan::{ChatScan, Slot, ThinkingScan};
use crate::splice::Edits;

pub use continued::{Continued, Refusal};
pub use history::edit as edit_history;

/// Tokens of the answer that a budget leaves room for, its closer among them; half of the limit where that is less.
pub const ANSWER_TOKENS_MIN: u64 = 64;

/// An engine, by how it takes a budget of thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// This project's own replica.
    Pinion,
    /// vLLM.
    Vllm,
    /// SGLang, started with `--enable-strict-thinking`.
    Sglang,
    /// llama.cpp's server.
    LlamaCpp,
}

impl Engine {
    /// The names in a configuration.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("pinion", Self::Pinion),
        ("vllm", Self::Vllm),
        ("sglang", Self::Sglang),
        ("llama.cpp", Self::LlamaCpp),
    ];

    /// The engine of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, engine)| *engine)
    }

    /// The top-level field for a budget, in which SGLang keeps an object of its own.
    const fn budget_field(self) -> &'static str {
        match self {
            Self::Pinion | Self::Vllm => "thinking_token_budget",
            Self::Sglang => "custom_params",
            Self::LlamaCpp => "thinking_budget_tokens",
        }
    }
}

/// A budget that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetError {
    /// The field.
    pub field: &'static str,
    /// What it says.
    pub written: String,
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, written } = self;
        write!(
            f,
            "`{field}` is `{written}`, expected a whole number of tokens from 0 on, or -1 for no limit; where several fields set a \
             budget, the same in all"
        )
    }
}

impl std::error::Error for BudgetError {}

/// The budget that a request asks for, in tokens.
///
/// # Errors
/// A field that is no budget, or two that differ.
pub fn asked(thinking: &ThinkingScan) -> Result<Option<u64>, BudgetError> {
    let mut asked = None;
    for budget in &thinking.budgets {
        let tokens = match &*budget.written {
            "-1" => None,
            written => Some(written.parse::<u64>().ok()),
        };
        if tokens == Some(None) || asked.is_some_and(|other| other != tokens) {
            return Err(BudgetError {
                field: budget.name,
                written: budget.written.clone(),
            });
        }
        asked = Some(tokens);
    }
    Ok(asked.flatten().flatten())
}

/// The budget that holds: what is asked for, at most what the policy allows, and so little that an answer fits behind it.
#[must_use]
pub fn budget(asked: Option<u64>, most: Option<u64>, max_tokens: Option<u64>) -> Option<u64> {
    let wanted = match (asked, most) {
        (Some(asked), Some(most)) => asked.min(most),
        (asked, most) => asked.or(most)?,
    };
    let room = max_tokens.map(|tokens| tokens - ANSWER_TOKENS_MIN.min(tokens.div_ceil(2)));
    Some(room.map_or(wanted, |room| wanted.min(room)))
}

/// Switches thinking by the template's own switch, where it has one. Whether anything is changed.
pub fn edit_switch(edits: &mut Edits, scan: &ChatScan, switch: &Switch, thinking: bool) -> bool {
    let Some(member) = switch.member(thinking) else {
        return false;
    };
    let slot = scan.thinking.kwargs.as_ref().map(|kwargs| &kwargs.slot);
    add_member(edits, scan, "chat_template_kwargs", slot, &member)
}

/// Switches thinking whatever the client says by the template's own switch. Whether anything is changed.
pub fn force_switch(edits: &mut Edits, scan: &ChatScan, switch: &Switch, thinking: bool) -> bool {
    let (Some(wanted), Some(value)) = (switch.says(thinking), switch.value(thinking)) else {
        return false;
    };
    let said = scan.thinking.kwargs.iter();
    let said = said.flat_map(|kwargs| &kwargs.switches);
    let (mut found, mut changed) = (false, false);
    for said in said.filter(|said| switch.names.contains(&said.name)) {
        found = true;
        if said.says != wanted {
            edits.replace(said.span.clone(), value.clone());
            changed = true;
        }
    }
    changed || (!found && edit_switch(edits, scan, switch, thinking))
}

/// Writes the effort over what the client says of it. Whether anything is changed.
pub fn edit_effort(edits: &mut Edits, scan: &ChatScan, effort: &str) -> bool {
    let thinking = &scan.thinking;
    let said = thinking.effort_argument().map(|said| said.span.clone());
    let spans: Vec<_> = said.into_iter().chain(thinking.effort_at.clone()).collect();
    if spans.is_empty() {
        let member = format!("\"reasoning_effort\":\"{effort}\"");
        edits.replace(scan.close..scan.close, at_end(scan, &member));
    }
    for span in spans {
        edits.replace(span, format!("\"{effort}\""));
    }
    true
}

/// Sets the most tokens of an answer, whatever the client says.
pub fn edit_max_tokens(edits: &mut Edits, scan: &ChatScan, tokens: u64) {
    if scan.max_tokens_at.is_empty() {
        let member = format!("\"max_tokens\":{tokens}");
        edits.replace(scan.close..scan.close, at_end(scan, &member));
    }
    for span in &scan.max_tokens_at {
        edits.replace(span.clone(), tokens.to_string());
    }
}

/// The last `/think`, `/no_think` or `/nothink` of a text, a word of its own, as Qwen3 and GLM read it.
#[must_use]
pub fn in_text(text: &str) -> Option<bool> {
    text.split_whitespace().rev().find_map(|word| match word {
        "/think" => Some(true),
        "/no_think" | "/nothink" => Some(false),
        _ => None,
    })
}

/// Puts the budget where the engine reads it. Whether anything is changed.
pub fn edit_budget(edits: &mut Edits, scan: &ChatScan, engine: Engine, tokens: u64) -> bool {
    let field = engine.budget_field();
    if engine == Engine::Sglang {
        let member = format!("\"thinking_budget\":{tokens}");
        let slot = scan.thinking.custom_params.as_ref();
        return add_member(edits, scan, field, slot, &member);
    }
    let member = format!("\"{field}\":{tokens}");
    let budgets = scan.thinking.budgets.iter();
    let mut fields = budgets.filter_map(|budget| Some((budget, budget.member.clone()?)));
    // The engine's own field counts where there are several; any other takes its place.
    let own = fields.clone().find(|(budget, _)| budget.name == field);
    match own.or_else(|| fields.next()) {
        Some((budget, _)) if budget.name == field && budget.written == tokens.to_string() => {
            return false;
        }
        Some((_, span)) => edits.replace(span, member),
        None => edits.replace(scan.close..scan.close, at_end(scan, &member)),
    }
    true
}

/// Adds a member to the object of a top-level field, and the field where it is missing or null. A value of another kind is the
/// replica's to refuse.
fn add_member(
    edits: &mut Edits,
    scan: &ChatScan,
    field: &str,
    slot: Option<&Slot>,
    member: &str,
) -> bool {
    match slot {
        None => {
            let field = format!("\"{field}\":{{{member}}}");
            edits.replace(scan.close..scan.close, at_end(scan, &field));
        }
        Some(slot) if slot.is_object => {
            let inside = slot.span.start + 1;
            let comma = if slot.has_fields { "," } else { "" };
            edits.replace(inside..inside, format!("{member}{comma}"));
        }
        Some(slot) if slot.is_null => edits.replace(slot.span.clone(), format!("{{{member}}}")),
        Some(_) => return false,
    }
    true
}

fn at_end(scan: &ChatScan, member: &str) -> String {
    let comma = if scan.has_fields { "," } else { "" };
    format!("{comma}{member}")
}

#[cfg(test)]
mod tests;
