//! A request by which a replica goes on behind a thought that was cut: the same conversation with the thought, closed, as the beginning
//! of the answer.

use std::fmt;
use std::sync::Arc;

use super::{Engine, at_end};
use crate::families::{Family, Grammar, History, Opener, Tags};
use crate::role::Role;
use crate::scan::ChatScan;
use crate::splice::Edits;

/// Why an answer cannot be cut and continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody knows how this engine continues an answer.
    Engine,
    /// The family's reasoning is in no tags that could be closed.
    Family,
    /// The chat template drops the reasoning of earlier messages, and with it the thought.
    Template,
    /// Several answers would be cut at different places.
    Answers,
    /// The tokens that close the thought would be missing.
    Logprobs,
    /// The conversation ends with an answer that is to be continued already.
    Prefilled,
    /// This engine does not read tools behind the beginning of an answer.
    Tools,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Engine => "its replica's engine is not known to continue an answer; the operator can name it as `engine` in gateway.toml",
            Self::Family => "its model does not think between an opener and a closer",
            Self::Template => "its model's chat template drops earlier reasoning, so that this engine cannot go on behind it",
            Self::Answers => "`n` is greater than 1; ask for one answer at a time",
            Self::Logprobs => "`logprobs` are asked for; leave them out",
            Self::Prefilled => "the last message is the assistant's; end with another role",
            Self::Tools => "there are `tools`, which this engine does not take together with the beginning of an answer",
        })
    }
}

/// How the answers of one request at one engine are continued.
#[derive(Clone, Debug)]
pub struct Continued {
    engine: Engine,
    tags: Arc<Tags>,
    /// The opener is part of what goes out, as the prompt has none.
    opens: bool,
}

impl Continued {
    /// For a request of this model at this engine.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn of(family: &Family, engine: Option<Engine>, scan: &ChatScan) -> Result<Self, Refusal> {
        let Grammar::Tags(tags) = &family.grammar else {
            return Err(Refusal::Family);
        };
        let engine = match engine {
            None | Some(Engine::Pinion) => return Err(Refusal::Engine),
            Some(Engine::Vllm) if family.history == History::Strip => {
                return Err(Refusal::Template);
            }
            Some(Engine::LlamaCpp) if scan.tools.is_some() => return Err(Refusal::Tools),
            Some(engine) => engine,
        };
        let last = scan.messages.last().map(|message| message.role);
        match (scan.n.unwrap_or(1), last) {
            (2.., _) => return Err(Refusal::Answers),
            _ if scan.logprobs => return Err(Refusal::Logprobs),
            (_, None | Some(Role::Assistant)) => return Err(Refusal::Prefilled),
            _ => {}
        }
        // vLLM renders the message alone; the others put it behind the prompt that asks for an answer.
        let opens = tags.opener == Opener::Model
            || engine == Engine::Vllm
            || (engine == Engine::LlamaCpp && !family.switch.names.is_empty());
        Ok(Self {
            engine,
            tags: tags.clone(),
            opens,
        })
    }

    /// The beginning of the answer: this thought, closed.
    fn prefix(&self, thought: &str) -> String {
        let first = |markers: &[String]| markers.first().cloned().unwrap_or_default();
        let open = if self.opens {
            format!("{}\n", first(&self.tags.open))
        } else {
            String::new()
        };
        let close = first(&self.tags.close);
        format!("{open}{}\n{close}\n\n", thought.trim_matches('\n'))
    }

    /// Makes the request go on behind `thought`, of so many tokens. `edits` hold nothing yet for thinking's switch.
    pub fn edit(&self, edits: &mut Edits, scan: &ChatScan, thought: &str, tokens: u64) {
        // Writing a string to memory cannot fail.
        let text = serde_json::to_string(&self.prefix(thought)).unwrap_or_default();
        if let Some(last) = scan.messages.last() {
            let end = last.span.end;
            let message = format!(",{{\"role\":\"assistant\",\"content\":{text}}}");
            edits.replace(end..end, message);
        }
        let left = scan
            .max_tokens
            .map(|most| most.saturating_sub(tokens).max(1));
        // A lane may have lowered them already.
        if let Some(left) = left {
            for span in &scan.max_tokens_at {
                edits.replace_again(span.clone(), left.to_string());
            }
        }
        match self.engine {
            Engine::LlamaCpp => self.switch_off(edits, scan),
            _ => {
                let fields = at_end(
                    scan,
                    "\"continue_final_message\":true,\"add_generation_prompt\":false",
                );
                edits.replace(scan.close..scan.close, fields);
            }
        }
    }

    /// llama.cpp continues no answer while the template could still open a thought. The last of two members counts there.
    fn switch_off(&self, edits: &mut Edits, scan: &ChatScan) {
        const OFF: &str = "\"enable_thinking\":false";
        match scan.thinking.kwargs.as_ref().map(|kwargs| &kwargs.slot) {
            Some(slot) if slot.is_object => {
                let comma = if slot.has_fields { "," } else { "" };
                let inside = slot.span.end - 1;
                edits.replace(inside..inside, format!("{comma}{OFF}"));
            }
            Some(slot) => edits.replace(slot.span.clone(), format!("{{{OFF}}}")),
            None => {
                let field = format!("\"chat_template_kwargs\":{{{OFF}}}");
                edits.replace(scan.close..scan.close, at_end(scan, &field));
            }
        }
    }

    /// Takes the fields for a budget out of a request to an engine that has none.
    pub fn drop_budgets(edits: &mut Edits, scan: &ChatScan) {
        for budget in &scan.thinking.budgets {
            if let Some(member) = &budget.member {
                edits.replace(member.clone(), format!("\"{}\":null", budget.name));
            }
        }
    }

    /// Makes the request ask for a stream with its usage, so that it can be cut.
    pub fn stream(edits: &mut Edits, scan: &ChatScan) {
        match &scan.stream_at {
            Some(span) => edits.replace(span.clone(), &b"true"[..]),
            None => edits.replace(scan.close..scan.close, at_end(scan, "\"stream\":true")),
        }
        edits.include_usage(scan);
    }
}
