//! What the next step computes: continuous batching with chunked prefill inside a token budget.
//!
//! Order of a step: every running sequence that needs one token more, then the rest of the prompts already begun, then
//! those that were preempted, then new ones in the order of `fairness`. A sequence out of room preempts the last in the
//! order of priority and arrival; being preempted raises it. So the first always goes on, and nothing starves. A
//! sequence that is not ready, because its client reads too slowly, gives up its place and its blocks as soon as a ready
//! one wants them.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::eviction::Millis;
use crate::fairness::Bills;
use crate::lease::KvCache;
use crate::sequence::{Admission, Sequence, SequenceId, Terms};

/// What bounds a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanLimits {
    /// Sequences that may hold blocks at once; at least 1.
    pub running_max: usize,
    /// Tokens that one step may compute; at least 1.
    pub step_tokens: usize,
    /// Tokens of output that a new sequence must find room for beside what it has, and beside as many for each that
    /// runs (or all that they may generate, where that is fewer): more means fewer preemptions, less means fuller blocks.
    pub output_room: usize,
}

/// One sequence's share of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The sequence.
    pub id: SequenceId,
    /// Positions whose tokens are computed.
    pub positions: Range<usize>,
    /// The last of its tokens is among them, so that its logits give the next one.
    pub wants_logits: bool,
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// At most one entry a sequence; empty when there is nothing that could run.
    pub slices: Vec<Slice>,
    /// Sequences that hold blocks for the first time.
    pub admitted: Vec<Admission>,
}

impl Plan {
    /// Tokens that it computes.
    pub fn tokens(&self) -> usize {
        self.slices.iter().map(|slice| slice.positions.len()).sum()
    }
}

/// The sequences of a replica and its KV blocks.
#[derive(Debug)]
pub struct Scheduler {
    limits: PlanLimits,
    kv: KvCache,
    /// Hold no blocks.
    waiting: BTreeMap<SequenceId, Sequence>,
    /// Hold blocks for all of their tokens but, perhaps, the last one.
    running: BTreeMap<SequenceId, Sequence>,
    bills: Bills,
    now: Millis,
    preemptions: u64,
}

impl Scheduler {
    /// No sequences yet.
    pub fn new(limits: PlanLimits, kv: KvCache) -> Self {
        let (waiting, running) = (BTreeMap::new(), BTreeMap::new());
        Self {
            limits,
            kv,
            waiting,
            running,
            bills: Bills::default(),
            now: 0,
            preemptions: 0,
        }
    }

    /// Adds a sequence. Its id is higher than every one before; its prompt and all that it may generate, less the last
    /// token, fit the blocks of the whole replica, or it would wait for ever.
    pub fn submit(&mut self, id: SequenceId, prompt: Vec<u32>, terms: Terms) {
        let sequence = Sequence::new(id, prompt, terms, &mut self.kv);
        self.bills.open(sequence.flow());
        self.waiting.insert(id, sequence);
    }

    /// It is `now` by the caller's clock: hints that end by then are over.
    pub fn advance(&mut self, now: Millis) {
        self.now = self.now.max(now);
        self.kv.advance(self.now);
    }

    /// Keeps what `session` owns for `keep_ms` from now; says whether anything is known of the session.
    pub fn keep(&mut self, session: &str, keep_ms: Millis) -> bool {
        self.kv.keep(session, self.now.saturating_add(keep_ms))
    }

    /// What `session` owns goes first from now on; says whether anything is known of the session.
    pub fn release(&mut self, session: &str) -> bool {
        self.kv.release(session)
    }

    /// A sequence that waits or runs.
    pub fn sequence(&self, id: SequenceId) -> Option<&Sequence> {
        self.running.get(&id).or_else(|| self.waiting.get(&id))
    }

    /// The blocks.
    pub fn kv(&self) -> &KvCache {
        &self.kv
    }

    /// Sequences that hold blocks.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Sequences that hold none, preempted ones among them.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Times that a sequence gave its blocks back to make room.
    pub fn preemptions(&self) -> u64 {
        self.preemptions
    }

    /// Decides the next step. `is_ready` says whether a sequence may run now, and may be asked again.
    pub fn plan(&mut self, mut is_ready: impl FnMut(SequenceId) -> bool) -> Plan {
        let mut ids: Vec<_> = self.running.keys().copied().collect();
        ids.sort_by_key(|id| self.running.get(id).map(Sequence::order));
        let (ready, mut paused): (Vec<_>, Vec<_>) = ids.into_iter().partition(|&id| is_ready(id));
        let mut plan = Plan::default();
        let mut budget = self.limits.step_tokens;
        // A decode may need a block more, and may preempt for it only what comes later and so is not in the plan yet.
        for &id in &ready {
            if self.missing(id) == Some(1) && budget > 0 && self.make_room(id, &mut paused) {
                self.add_slice(id, &mut budget, &mut plan);
            }
        }
        for &id in &ready {
            if self.missing(id).is_some_and(|missing| missing > 1) {
                self.add_slice(id, &mut budget, &mut plan);
            }
        }
        while budget > 0
            && let Some(id) = self.next_waiting(&mut is_ready)
            && self.admit(id, &mut paused, &mut plan)
        {
            self.add_slice(id, &mut budget, &mut plan);
        }
        plan
    }

    /// Who is admitted next: the first of those that had begun before, else the first of the flow whose turn it is.
    fn next_waiting(&self, is_ready: &mut impl FnMut(SequenceId) -> bool) -> Option<SequenceId> {
        let ready: Vec<_> = self
            .waiting
            .iter()
            .filter(|&(&id, _)| is_ready(id))
            .collect();
        let begun = ready
            .iter()
            .filter(|(_, sequence)| sequence.was_preempted());
        let begun = begun.min_by_key(|(_, sequence)| sequence.order());
        let next = || {
            ready
                .iter()
                .min_by_key(|(id, s)| (self.bills.rank(s.flow()), *id))
        };
        begun.or_else(next).map(|&(&id, _)| id)
    }

    /// The step has succeeded: its tokens are computed, and blocks that it filled may be reused.
    pub fn complete(&mut self, plan: &Plan) {
        for slice in &plan.slices {
            if let Some(sequence) = self.running.get_mut(&slice.id) {
                sequence.advance(&mut self.kv, slice.positions.len());
            }
        }
    }

    /// Appends the token that was chosen from a sequence's logits.
    pub fn push_token(&mut self, id: SequenceId, token: u32) {
        if let Some(sequence) = self.running.get_mut(&id) {
            sequence.push(token);
            self.bills.charge(sequence.flow(), 1);
        }
    }

    /// Ends a sequence, whatever the cause, and frees its blocks. Those that a failed step was to fill have not been
    /// published and so are never reused.
    pub fn remove(&mut self, id: SequenceId) {
        let sequence = self.running.remove(&id);
        if let Some(sequence) = sequence.or_else(|| self.waiting.remove(&id)) {
            self.bills.close(sequence.flow());
            sequence.leave(&mut self.kv, self.now);
        }
    }

    /// Nothing that has been computed so far is reused from now on.
    pub fn reset_prefix_cache(&mut self) {
        self.running.values_mut().for_each(Sequence::make_private);
        self.kv.forget_all();
    }

    /// Panics unless blocks and sequences agree. For tests.
    pub fn check_invariants(&self) {
        self.kv.check_invariants();
        assert!(self.running.len() <= self.limits.running_max);
        for sequence in self.waiting.values() {
            let held = (sequence.block_table().len(), sequence.computed());
            assert_eq!(held, (0, 0), "a waiting sequence holds blocks");
        }
        for block in 0..self.kv.pool().capacity() as u32 {
            let holders = self
                .running
                .values()
                .filter(|s| s.block_table().contains(&block));
            assert_eq!(
                holders.count(),
                self.kv.pool().refs(block) as usize,
                "block {block}"
            );
        }
    }

    fn missing(&self, id: SequenceId) -> Option<usize> {
        self.running.get(&id).map(Sequence::missing)
    }

    /// Plans as much of a running sequence as the budget allows.
    fn add_slice(&self, id: SequenceId, budget: &mut usize, plan: &mut Plan) {
        let Some(sequence) = self.running.get(&id) else {
            return;
        };
        let count = sequence.missing().min(*budget);
        if count == 0 {
            return;
        }
        let start = sequence.computed();
        let wants_logits = start + count == sequence.tokens().len();
        plan.slices.push(Slice {
            id,
            positions: start..start + count,
            wants_logits,
        });
        *budget -= count;
    }

    /// Leases the block that a decode may need, at the cost of paused sequences, then of the youngest; says no when
    /// that was the sequence itself.
    fn make_room(&mut self, id: SequenceId, paused: &mut Vec<SequenceId>) -> bool {
        loop {
            let Some(sequence) = self.running.get_mut(&id) else {
                return false;
            };
            if sequence.grow(&mut self.kv) {
                return true;
            }
            let Some(victim) = paused.pop().or_else(|| self.last_running()) else {
                return false;
            };
            self.preempt(victim);
        }
    }

    /// The sequence that all others go before.
    fn last_running(&self) -> Option<SequenceId> {
        let last = self.running.values().max_by_key(|s| s.order());
        last.map(|sequence| sequence.order().1)
    }

    /// Lets one of the waiting run if there is a place and room for all of its tokens and for output to come, at the cost
    /// of paused sequences only.
    fn admit(&mut self, id: SequenceId, paused: &mut Vec<SequenceId>, plan: &mut Plan) -> bool {
        let Some(mut sequence) = self.waiting.remove(&id) else {
            return false;
        };
        let admission = loop {
            if self.running.len() < self.limits.running_max
                && let Some(admission) = self.try_admit(&mut sequence)
            {
                break Some(admission);
            }
            match paused.pop() {
                Some(victim) => self.preempt(victim),
                None => break None,
            }
        };
        let Some(first) = admission else {
            self.waiting.insert(id, sequence);
            return false;
        };
        if let Some(admission) = first {
            self.bills.serve(sequence.flow());
            let computed = admission.prompt_tokens - admission.cached_tokens;
            self.bills.charge(sequence.flow(), computed);
            plan.admitted.push(admission);
        }
        self.running.insert(id, sequence);
        true
    }

    /// Leases blocks unless that would leave too little for what it and the running ones will generate. Alone it always
    /// runs, whatever it may come to want.
    fn try_admit(&mut self, sequence: &mut Sequence) -> Option<Option<Admission>> {
        let to_come = |sequence: &Sequence| sequence.blocks_to_come(self.limits.output_room);
        let promised: usize = self.running.values().map(to_come).sum();
        let alone = self.running.is_empty();
        let spare = if alone {
            0
        } else {
            promised + to_come(sequence)
        };
        sequence.admit(&mut self.kv, spare)
    }

    fn preempt(&mut self, id: SequenceId) {
        if let Some(mut sequence) = self.running.remove(&id) {
            sequence.preempt(&mut self.kv);
            self.waiting.insert(id, sequence);
            self.preemptions += 1;
        }
    }
}

#[cfg(test)]
mod tests;
