//! Choosing the next token.
//!
//! Order, as in vLLM: log probabilities of the raw logits; a token that is forced; banned tokens; repetition, frequency
//! and presence penalties; then greedy, or temperature, min-p, top-k, top-p and a draw. Everything is ordered by logit
//! and then by id, the lower id first. The choice is a function of logits, parameters, history and position alone: the batch, preemption
//! and the cache cannot change it.

mod cutoffs;
mod penalties;
mod random;

use std::cmp::Ordering;

/// How tokens are chosen; every value is already validated.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    /// 0 is greedy.
    pub temperature: f32,
    /// Nucleus: 1.0 keeps all.
    pub top_p: f32,
    /// 0 keeps all.
    pub top_k: u32,
    /// Share of the likeliest token's probability below which a token is cut: 0.0 keeps all.
    pub min_p: f32,
    /// 1.0 changes nothing.
    pub repetition_penalty: f32,
    /// 0.0 changes nothing.
    pub presence_penalty: f32,
    /// 0.0 changes nothing.
    pub frequency_penalty: f32,
    /// Seed of this request's random stream.
    pub seed: u64,
}

/// What one choice looks at besides logits and parameters.
#[derive(Clone, Copy, Debug)]
pub struct History<'a> {
    /// Counts for the repetition penalty only.
    pub prompt: &'a [u32],
    /// Counts for all penalties. Prompt and output together give the position in the random stream.
    pub output: &'a [u32],
    /// Tokens that may not be chosen now.
    pub banned: &'a [u32],
    /// The token that must be chosen, whatever its logit and the parameters; one beyond the logits is passed over.
    pub forced: Option<u32>,
    /// How many of the likeliest tokens to report; `None` for no log probabilities at all.
    pub logprobs: Option<u8>,
}

/// One chosen token.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its id.
    pub token: u32,
    /// Its natural-log probability by the raw logits, when asked for.
    pub logprob: Option<f32>,
    /// The likeliest tokens by the raw logits, as many as asked for.
    pub top: Vec<(u32, f32)>,
}

/// Every logit is NaN, negative infinity or banned: the model has computed nothing that could be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NothingToChoose;

/// A token that may be chosen.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: u32,
    logit: f32,
    /// Probability relative to the likeliest candidate, 0.0 to 1.0.
    weight: f32,
}

impl Candidate {
    /// Likelier first, then the lower id. No logit is NaN, and zeros are equal whatever their sign.
    fn order(&self, other: &Self) -> Ordering {
        let by_logit = other.logit.partial_cmp(&self.logit);
        by_logit
            .unwrap_or(Ordering::Equal)
            .then(self.id.cmp(&other.id))
    }
}

/// Chooses tokens. Holds nothing but buffers, so one sampler serves all sequences.
#[derive(Debug, Default)]
pub struct Sampler {
    logits: Vec<f32>,
    candidates: Vec<Candidate>,
    counts: penalties::Counts,
}

impl Sampler {
    /// Chooses one of `logits`, `(vocab)`. Ids in `history` beyond them are passed over.
    pub fn choose(
        &mut self,
        logits: &[f32],
        params: &SamplingParams,
        history: History<'_>,
    ) -> Result<Choice, NothingToChoose> {
        self.logits.clear();
        self.logits
            .extend(logits.iter().map(|&logit| usable(logit)));
        let raw = history
            .logprobs
            .map(|count| LogProbs::new(&self.logits, count));
        let forced = history.forced.filter(|&id| (id as usize) < logits.len());
        if let Some(token) = forced {
            return Ok(choice(token, logits, raw));
        }
        for &id in history.banned {
            if let Some(logit) = self.logits.get_mut(id as usize) {
                *logit = f32::NEG_INFINITY;
            }
        }
        self.counts.apply(&mut self.logits, params, history);
        let best = self.best().ok_or(NothingToChoose)?;
        let token = if params.temperature > 0.0 {
            self.draw(best, params, history)
        } else {
            best
        };
        Ok(choice(token, logits, raw))
    }

    /// The likeliest token.
    fn best(&self) -> Option<u32> {
        let mut best = (None, f32::NEG_INFINITY);
        for (id, &logit) in self.logits.iter().enumerate() {
            if logit > best.1 {
                best = (Some(id as u32), logit);
            }
        }
        best.0
    }

    fn draw(&mut self, best: u32, params: &SamplingParams, history: History<'_>) -> u32 {
        let max = self.logits[best as usize];
        self.candidates.clear();
        for (id, &logit) in self.logits.iter().enumerate() {
            let weight = ((logit - max) / params.temperature).exp();
            // A weight of 0 can never be drawn; min-p is a bound on the weight itself, for the largest is 1.
            if weight > 0.0 && weight >= params.min_p {
                self.candidates.push(Candidate {
                    id: id as u32,
                    logit,
                    weight,
                });
            }
        }
        cutoffs::top_k(&mut self.candidates, params.top_k as usize);
        cutoffs::top_p(&mut self.candidates, params.top_p);
        let position = (history.prompt.len() + history.output.len()) as u64;
        let point = random::uniform(params.seed, position) * total(&self.candidates);
        let mut reached = 0.0;
        for candidate in &self.candidates {
            reached += f64::from(candidate.weight);
            if reached > point {
                return candidate.id;
            }
        }
        // Only rounding at the very end of the sum could come here.
        self.candidates
            .last()
            .map_or(best, |candidate| candidate.id)
    }
}

/// A token that was chosen, with what there is to report of it.
fn choice(token: u32, logits: &[f32], raw: Option<LogProbs>) -> Choice {
    let logprob = raw
        .as_ref()
        .map(|raw| raw.of(usable(logits[token as usize])));
    Choice {
        token,
        logprob,
        top: raw.map(|raw| raw.top).unwrap_or_default(),
    }
}

/// Sum of the weights, in the candidates' order.
fn total(candidates: &[Candidate]) -> f64 {
    candidates
        .iter()
        .map(|candidate| f64::from(candidate.weight))
        .sum()
}

/// A number that can be compared and subtracted: NaN is never chosen, infinity is merely very large.
fn usable(logit: f32) -> f32 {
    if logit.is_nan() {
        f32::NEG_INFINITY
    } else {
        logit.min(f32::MAX)
    }
}

/// Log probabilities of one row of raw logits.
struct LogProbs {
    log_sum: f64,
    top: Vec<(u32, f32)>,
}

impl LogProbs {
    /// `count` is how many of the likeliest to keep.
    fn new(logits: &[f32], count: u8) -> Self {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits
            .iter()
            .map(|&logit| f64::from((logit - max).exp()))
            .sum();
        let mut raw = Self {
            log_sum: f64::from(max) + sum.ln(),
            top: Vec::new(),
        };
        let count = usize::from(count).min(logits.len());
        if count == 0 {
            return raw;
        }
        let mut likeliest: Vec<Candidate> = (0..)
            .zip(logits)
            .map(|(id, &logit)| Candidate {
                id,
                logit,
                weight: 0.0,
            })
            .collect();
        likeliest.select_nth_unstable_by(count - 1, Candidate::order);
        likeliest.truncate(count);
        likeliest.sort_unstable_by(Candidate::order);
        raw.top = likeliest.iter().map(|c| (c.id, raw.of(c.logit))).collect();
        raw
    }

    fn of(&self, logit: f32) -> f32 {
        (f64::from(logit) - self.log_sum) as f32
    }
}

#[cfg(test)]
mod tests;
