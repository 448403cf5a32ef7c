//! Penalties for tokens that have been seen.

use super::{History, SamplingParams};

/// What is known of one token's occurrences.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    penalised: bool,
    in_output: u32,
}

/// A table by token id, all zero between calls.
#[derive(Debug, Default)]
pub(super) struct Counts {
    seen: Vec<Seen>,
}

impl Counts {
    /// Repetition as in Hugging Face's transformers: a token of prompt or output has a positive logit divided and any
    /// other multiplied. Then frequency and presence as in OpenAI's API: a token of the output loses
    /// `frequency · count + presence`.
    pub(super) fn apply(
        &mut self,
        logits: &mut [f32],
        params: &SamplingParams,
        history: History<'_>,
    ) {
        let repetition = params.repetition_penalty;
        let (frequency, presence) = (params.frequency_penalty, params.presence_penalty);
        let by_count = frequency != 0.0 || presence != 0.0;
        if repetition == 1.0 && !by_count {
            return;
        }
        self.seen.resize(logits.len(), Seen::default());
        let prompt = if repetition == 1.0 {
            &[]
        } else {
            history.prompt
        };
        for &id in history.output {
            if let Some(seen) = self.seen.get_mut(id as usize) {
                seen.in_output += 1;
            }
        }
        let ids = || prompt.iter().chain(history.output).map(|&id| id as usize);
        for id in ids() {
            let Some(seen) = self.seen.get_mut(id).filter(|seen| !seen.penalised) else {
                continue;
            };
            seen.penalised = true;
            let logit = &mut logits[id];
            if *logit > 0.0 {
                *logit /= repetition;
            } else {
                *logit *= repetition;
            }
            if seen.in_output > 0 {
                *logit -= frequency * seen.in_output as f32 + presence;
            }
        }
        for id in ids() {
            if let Some(seen) = self.seen.get_mut(id) {
                *seen = Seen::default();
            }
        }
    }
}
