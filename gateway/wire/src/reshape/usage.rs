//! `completion_tokens_details.reasoning_tokens`, which a client always finds: the replica's own count, else the share of the
//! reasoning in the answer's bytes.

use super::patch::Patch;
use crate::chunk::{Places, UsageScan};

/// Bytes of the answer so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shares {
    /// Reasoning that the replica split off.
    pub(super) engine: usize,
    /// Reasoning that was split off here.
    pub(super) own: usize,
    /// Answer text and tool calls.
    pub(super) content: usize,
}

impl Shares {
    /// The replica's count, unless it is none, or 0 of an answer that was split here: a replica that does not split counts none.
    fn tokens(&self, usage: &UsageScan) -> u64 {
        let told = usage.reasoning_tokens.unwrap_or(0);
        let reasoning = self.engine.saturating_add(self.own);
        let counted = self.own == 0 && usage.reasoning_tokens.is_some();
        if told > 0 || reasoning == 0 || counted {
            return told;
        }
        let all = (reasoning as u128).saturating_add(self.content as u128);
        let tokens = u128::from(usage.completion_tokens) * reasoning as u128 / all;
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }

    /// Puts the count where it is missing, or another than the replica's.
    pub(super) fn patch(&self, usage: &mut UsageScan, places: &Places, patch: &mut Patch) {
        let tokens = self.tokens(usage);
        if usage.reasoning_tokens == Some(tokens) {
            return;
        }
        usage.reasoning_tokens = Some(tokens);
        let count = format!("\"reasoning_tokens\":{tokens}");
        let details = format!("\"completion_tokens_details\":{{{count}}}");
        if let Some(span) = &places.reasoning_tokens {
            patch.replace(span.clone(), |out| {
                out.extend_from_slice(tokens.to_string().as_bytes());
            });
        } else if let Some(span) = &places.no_details {
            patch.replace(span.clone(), |out| {
                out.extend_from_slice(format!("{{{count}}}").as_bytes());
            });
        } else if let Some((object, member)) = places
            .details
            .as_ref()
            .map(|object| (object, count))
            .or(places.usage.as_ref().map(|object| (object, details)))
        {
            let inside = object.span.start + 1;
            patch.replace(inside..inside, |out| {
                out.extend_from_slice(member.as_bytes());
                if object.has_fields {
                    out.push(b',');
                }
            });
        }
    }
}
