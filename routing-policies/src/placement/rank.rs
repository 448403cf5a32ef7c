//! The rule: what each replica would cost, and the order that follows.

use std::cmp::Reverse;

use super::queue::Queue;
use super::settings::Settings;
use super::state::{Ask, State};
use crate::decide::ReplicaView;
use crate::key::ReplicaId;

/// Share of new conversations, as a multiple of the common share, from which on a block is taken to be on every replica: lacking it costs
/// nothing at all. Else what is left of its cost would break every tie while queues are empty, and all sessions gather where it lay first.
const EVERYWHERE: f64 = 2.5;

/// What placing a request on a replica is expected to cost, part by part, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Until the replica begins on it.
    pub wait_s: f64,
    /// To prefill what the replica lacks, common blocks at a discount.
    pub prefill_s: f64,
    /// What that prefill takes from the requests that come after it.
    pub crowding_s: f64,
    /// For the requests that are in flight there.
    pub in_flight_s: f64,
    /// For leaving the replica that served the session last.
    pub leave_s: f64,
}

impl Cost {
    /// All parts together.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.wait_s + self.prefill_s + self.crowding_s + self.in_flight_s + self.leave_s
    }
}

/// A replica in the order, with what put it there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The replica.
    pub replica: ReplicaId,
    /// What it is expected to cost.
    pub cost: Cost,
    /// Tokens of the prompt that it is believed to hold.
    pub held_tokens: u32,
}

/// Orders the ready replicas by cost, cheapest first; equal costs in the order of `ask.key`. `replicas` may come in any order and hold
/// repetitions.
#[must_use]
pub fn rank(
    settings: &Settings,
    state: &State,
    ask: &Ask<'_>,
    replicas: &[ReplicaView],
    now_s: f64,
) -> Vec<Ranked> {
    let held = state.beliefs.held(ask.blocks);
    let charged = charged_tokens(settings, state, ask);
    let cached = ask.cached_tokens();
    let cold = Queue::default();
    let line = state.pace.line();
    let mean_s = state.mean_s();
    let margin_s = state.margin_s(settings);
    let mut ranked: Vec<Ranked> = replicas
        .iter()
        .filter(|view| view.ready)
        .map(|view| {
            let slot = state.slots.get(&view.id);
            let queue = slot.map_or(&cold, |&slot| &state.queues[slot]);
            let held = slot.map_or(0, |&slot| held[slot]);
            let wait_s = queue.wait_s(line, now_s);
            let prefill_s = charged[held] * line.per_token_s;
            let home = ask.home.is_none_or(|home| home == view.id);
            let cost = Cost {
                wait_s,
                prefill_s,
                crowding_s: settings.crowding * prefill_s * (wait_s + prefill_s / 2.0) / mean_s,
                in_flight_s: settings.in_flight * mean_s * f64::from(view.in_flight),
                leave_s: if home { 0.0 } else { margin_s },
            };
            Ranked {
                replica: view.id,
                cost,
                held_tokens: cached[held],
            }
        })
        .collect();
    // Of repetitions the cheapest stays.
    ranked.sort_by(|a, b| {
        let ids = a.replica.cmp(&b.replica);
        ids.then_with(|| a.cost.total_s().total_cmp(&b.cost.total_s()))
    });
    ranked.dedup_by_key(|ranked| ranked.replica);
    let score = |ranked: &Ranked| Reverse(ask.key.score(ranked.replica));
    ranked.sort_by(|a, b| {
        let costs = a.cost.total_s().total_cmp(&b.cost.total_s());
        costs.then_with(|| score(a).cmp(&score(b)))
    });
    ranked
}

/// Tokens to charge for, by the number of leading blocks that a replica holds: what it lacks, each block as far as it is not common.
fn charged_tokens(settings: &Settings, state: &State, ask: &Ask<'_>) -> Vec<f64> {
    // A conversation that has a block has all blocks before it: behind the first that nobody shares, nobody shares any.
    let shares = ask
        .blocks
        .iter()
        .map(|block| state.common.share(block.key))
        .take_while(|share| *share > 0.0);
    let weights: Vec<f64> = shares
        .map(|share| weight(share / settings.common_share))
        .collect();
    let in_blocks: u64 = ask.blocks.iter().map(|b| u64::from(b.tokens)).sum();
    let rest = u64::from(ask.prompt_tokens).saturating_sub(in_blocks);
    let mut charged = vec![rest as f64; ask.blocks.len() + 1];
    for (place, block) in ask.blocks.iter().enumerate().rev() {
        let weight = weights.get(place).copied().unwrap_or(1.0);
        charged[place] = charged[place + 1] + weight * f64::from(block.tokens);
    }
    charged
}

/// What lacking a block costs, as a part of what it would cost if it were nobody else's: `common` is its share of new conversations over
/// the common share.
fn weight(common: f64) -> f64 {
    if common < EVERYWHERE {
        1.0 / (1.0 + common * common * common)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
