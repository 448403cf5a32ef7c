use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::BLOCK_TOKENS;
use crate::block_key::KeyMaker;
use crate::fairness::Priority;
use crate::lease::blocks_for;

fn scheduler(running_max: usize, step_tokens: usize, blocks: usize) -> Scheduler {
    let kv = KvCache::new(blocks, KeyMaker::new("m"), true);
    Scheduler::new(
        PlanLimits {
            running_max,
            step_tokens,
            output_room: 0,
        },
        kv,
    )
}

/// Plans and completes one step in which every sequence is ready, appends token 0 wherever logits were wanted, and
/// returns the step as `(id, first position, tokens)`.
fn step(scheduler: &mut Scheduler) -> Vec<(SequenceId, usize, usize)> {
    step_with(scheduler, |_| true)
}

fn step_with(
    scheduler: &mut Scheduler,
    ready: impl FnMut(SequenceId) -> bool,
) -> Vec<(SequenceId, usize, usize)> {
    let plan = scheduler.plan(ready);
    scheduler.check_invariants();
    scheduler.complete(&plan);
    for slice in plan.slices.iter().filter(|slice| slice.wants_logits) {
        scheduler.push_token(slice.id, 0);
    }
    scheduler.check_invariants();
    plan.slices
        .iter()
        .map(|s| (s.id, s.positions.start, s.positions.len()))
        .collect()
}

/// A prompt that shares no block with another of these.
fn prompt(id: u32, len: usize) -> Vec<u32> {
    vec![1000 + id; len]
}

#[test]
fn decodes_go_first_and_prompts_share_what_is_left() {
    let mut s = scheduler(4, 10, 64);
    s.submit(0, prompt(0, 4), Terms::default());
    s.submit(1, prompt(1, 13), Terms::default());
    s.submit(2, prompt(2, 3), Terms::default());
    assert_eq!(step(&mut s), [(0, 0, 4), (1, 0, 6)]);
    assert_eq!(step(&mut s), [(0, 4, 1), (1, 6, 7), (2, 0, 2)]);
    assert_eq!(step(&mut s), [(0, 5, 1), (1, 13, 1), (2, 2, 1)]);
}

#[test]
fn no_more_than_running_max_hold_blocks() {
    let mut s = scheduler(2, 100, 64);
    (0..3).for_each(|id| s.submit(id, prompt(id as u32, 4), Terms::default()));
    assert_eq!(step(&mut s), [(0, 0, 4), (1, 0, 4)]);
    s.remove(0);
    assert_eq!(step(&mut s), [(1, 4, 1), (2, 0, 4)]);
}

#[test]
fn a_prompt_without_room_waits_and_is_not_overtaken() {
    let mut s = scheduler(4, 200, 4);
    s.submit(0, prompt(0, 30), Terms::default());
    s.submit(1, prompt(1, 40), Terms::default());
    s.submit(2, prompt(2, 4), Terms::default());
    assert_eq!(step(&mut s), [(0, 0, 30)]);
    assert_eq!(step(&mut s), [(0, 30, 1)]);
    s.remove(0);
    assert_eq!(step(&mut s), [(1, 0, 40), (2, 0, 4)]);
}

#[test]
fn out_of_blocks_the_youngest_is_preempted_and_resumes_from_the_cache() {
    let mut s = scheduler(4, 200, 4);
    s.submit(0, prompt(0, 32), Terms::default());
    s.submit(1, prompt(1, 31), Terms::default());
    assert_eq!(step(&mut s), [(0, 0, 32), (1, 0, 31)]);
    // The first needs a third block: the second gives both of its blocks back.
    assert_eq!(step(&mut s), [(0, 32, 1)]);
    assert_eq!((s.running(), s.waiting(), s.preemptions()), (1, 1, 1));
    s.remove(0);
    // 32 tokens by now, of which one block is still there; a resumption is no admission and no hit.
    let plan = s.plan(|_| true);
    assert_eq!(plan.admitted, []);
    assert_eq!(
        plan.slices,
        [Slice {
            id: 1,
            positions: 16..32,
            wants_logits: true
        }]
    );
}

#[test]
fn a_hit_is_counted_once_at_the_first_admission() {
    let mut s = scheduler(1, 200, 8);
    let admission = |id, cached_tokens| Admission {
        id,
        prompt_tokens: 40,
        cached_tokens,
    };
    s.submit(0, prompt(0, 40), Terms::default());
    assert_eq!(s.plan(|_| true).admitted, [admission(0, 0)]);
    s.remove(0);
    // That step was never completed, so nothing of it may be reused.
    s.submit(1, prompt(0, 40), Terms::default());
    let plan = s.plan(|_| true);
    assert_eq!(plan.admitted, [admission(1, 0)]);
    s.complete(&plan);
    // The place is taken: looking again and again counts nothing.
    s.submit(2, prompt(0, 40), Terms::default());
    assert_eq!(s.plan(|_| true).admitted, []);
    assert_eq!(s.plan(|_| true).admitted, []);
    s.remove(1);
    assert_eq!(s.plan(|_| true).admitted, [admission(2, 32)]);
}

#[test]
fn after_a_reset_a_running_sequence_publishes_nothing_of_what_it_has() {
    let mut s = scheduler(2, 20, 8);
    s.submit(0, prompt(0, 40), Terms::default());
    assert_eq!(step(&mut s), [(0, 0, 20)]);
    s.reset_prefix_cache();
    s.check_invariants();
    step(&mut s);
    s.submit(1, prompt(0, 40), Terms::default());
    assert_eq!(s.plan(|_| true).admitted[0].cached_tokens, 0);
    // The same with a first block that was only begun.
    let mut s = scheduler(2, 10, 8);
    s.submit(0, prompt(0, 40), Terms::default());
    step(&mut s);
    s.reset_prefix_cache();
    (0..4).for_each(|_| drop(step(&mut s)));
    s.submit(1, prompt(0, 40), Terms::default());
    assert_eq!(s.plan(|_| true).admitted[0].cached_tokens, 0);
}

#[test]
fn generated_tokens_are_reused_by_the_next_turn() {
    let mut s = scheduler(1, 200, 8);
    s.submit(0, prompt(0, 10), Terms::default());
    (0..8).for_each(|_| drop(step(&mut s)));
    let mut next_turn = s.sequence(0).unwrap().tokens().to_vec();
    assert_eq!(next_turn.len(), 18);
    next_turn.extend(prompt(5, 10));
    s.remove(0);
    s.submit(1, next_turn, Terms::default());
    assert_eq!(s.plan(|_| true).admitted[0].cached_tokens, 16);
}

#[test]
fn a_paused_sequence_keeps_its_place_only_while_nobody_wants_it() {
    let mut s = scheduler(2, 100, 64);
    s.submit(0, prompt(0, 20), Terms::default());
    s.submit(1, prompt(1, 4), Terms::default());
    step(&mut s);
    assert_eq!(step_with(&mut s, |id| id != 0), [(1, 4, 1)]);
    assert_eq!(s.running(), 2);
    s.submit(2, prompt(2, 4), Terms::default());
    assert_eq!(step_with(&mut s, |id| id != 0), [(1, 5, 1), (2, 0, 4)]);
    assert_eq!((s.running(), s.preemptions()), (2, 1));
    // Ready again, it is the first of the waiting, ahead of later arrivals.
    s.submit(3, prompt(3, 4), Terms::default());
    s.remove(1);
    assert_eq!(step(&mut s), [(2, 4, 1), (0, 16, 5)]);
}

#[test]
fn a_paused_sequence_gives_its_blocks_to_a_decode_out_of_room() {
    let mut s = scheduler(2, 100, 3);
    s.submit(0, prompt(0, 17), Terms::default());
    s.submit(1, prompt(1, 16), Terms::default());
    step(&mut s);
    assert_eq!(step_with(&mut s, |id| id == 1), [(1, 16, 1)]);
    assert_eq!((s.running(), s.preemptions()), (1, 1));
}

#[derive(Clone, Debug)]
struct Request {
    arrives: usize,
    prompt: Vec<u32>,
    generates: usize,
    paused: u32,
    flow: (bool, usize),
}

impl Request {
    fn terms(&self) -> Terms {
        let tenant = if self.flow.0 { "a" } else { "b" };
        Terms {
            output_max: self.generates,
            session: self.flow.0.then(|| "s".into()),
            keep_ms: Some(5),
            ..terms(tenant, Priority::ALL[self.flow.1])
        }
    }
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let prompt = (prop::collection::vec(0..2u32, 0..3), 1..20usize).prop_map(|(blocks, tail)| {
        let mut prompt: Vec<u32> = blocks.iter().flat_map(|&b| [b; BLOCK_TOKENS]).collect();
        prompt.extend(std::iter::repeat_n(2, tail));
        prompt
    });
    let request = (
        0..40usize,
        prompt,
        1..40usize,
        any::<u32>(),
        (any::<bool>(), 0..3usize),
    )
        .prop_map(|(arrives, prompt, generates, paused, flow)| Request {
            arrives,
            prompt,
            generates,
            paused,
            flow,
        });
    prop::collection::vec(request, 1..10)
}

/// Bounds of a run: it must end within them whatever is paused in the first 32 steps.
const STEPS_MAX: usize = 20_000;

fn run(mut requests: Vec<Request>, running_max: usize, step_tokens: usize, spare_blocks: usize) {
    requests.sort_by_key(|request| request.arrives);
    let largest = requests
        .iter()
        .map(|r| blocks_for(r.prompt.len() + r.generates - 1))
        .max();
    let mut s = scheduler(running_max, step_tokens, largest.unwrap() + spare_blocks);
    let mut live = BTreeSet::new();
    let mut admitted = Vec::new();
    for now in 0..STEPS_MAX {
        for (id, request) in requests
            .iter()
            .enumerate()
            .filter(|(_, r)| r.arrives == now)
        {
            s.submit(id as u64, request.prompt.clone(), request.terms());
            live.insert(id as u64);
        }
        let ready = |id: u64| now >= 32 || requests[id as usize].paused >> now & 1 == 0;
        s.advance(now as u64);
        let plan = s.plan(ready);
        s.check_invariants();
        assert!(plan.tokens() <= step_tokens);
        let any_ready = live.iter().any(|&id| ready(id));
        assert_eq!(
            !plan.slices.is_empty(),
            any_ready,
            "a step is empty only if nobody is ready"
        );
        let ids: BTreeSet<_> = plan.slices.iter().map(|slice| slice.id).collect();
        assert_eq!(
            ids.len(),
            plan.slices.len(),
            "a sequence is in the step twice"
        );
        for slice in &plan.slices {
            assert!(ready(slice.id) && !slice.positions.is_empty());
            let sequence = s.sequence(slice.id).unwrap();
            assert_eq!(slice.positions.start, sequence.computed());
            assert!(sequence.block_table().len() >= blocks_for(slice.positions.end));
        }
        admitted.extend(plan.admitted.iter().map(|admission| admission.id));
        s.complete(&plan);
        for slice in plan.slices.iter().filter(|slice| slice.wants_logits) {
            s.push_token(slice.id, (now % 2) as u32);
            if s.sequence(slice.id).unwrap().output().len() == requests[slice.id as usize].generates
            {
                s.remove(slice.id);
                live.remove(&slice.id);
            }
        }
        s.check_invariants();
        if live.is_empty() && now > 40 {
            break;
        }
    }
    assert!(live.is_empty(), "sequences starved: {live:?}");
    assert_eq!(s.kv().pool().leased(), 0);
    admitted.sort_unstable();
    assert!(
        admitted.iter().copied().eq(0..requests.len() as u64),
        "each is admitted once"
    );
}

proptest! {
    #[test]
    fn every_sequence_ends_whatever_the_limits_and_pauses(
        requests in requests(), running_max in 1..5usize, step_tokens in 1..40usize, spare in 0..6usize,
    ) {
        run(requests, running_max, step_tokens, spare);
    }
}

fn terms(tenant: &str, priority: Priority) -> Terms {
    Terms {
        tenant: Some(tenant.into()),
        priority,
        ..Terms::default()
    }
}

#[test]
fn a_tenant_with_a_backlog_delays_another_by_one_request() {
    let mut s = scheduler(1, 100, 64);
    for id in 0..6 {
        s.submit(id, prompt(id as u32, 20), terms("many", Priority::Default));
    }
    step(&mut s);
    s.submit(6, prompt(6, 20), terms("few", Priority::Default));
    s.submit(7, prompt(7, 20), terms("few", Priority::Default));
    let mut order = Vec::new();
    for _ in 0..8 {
        let id = *s.running.keys().next().unwrap();
        s.remove(id);
        order.push(id);
        step(&mut s);
    }
    assert_eq!(order, [0, 6, 1, 7, 2, 3, 4, 5]);
}

#[test]
fn an_urgent_request_goes_ahead_of_any_backlog_and_bulk_is_served_too() {
    let mut s = scheduler(1, 100, 64);
    for id in 0..3 {
        s.submit(id, prompt(id as u32, 20), terms("a", Priority::Bulk));
    }
    step(&mut s);
    for id in 3..40 {
        s.submit(id, prompt(id as u32, 20), terms("a", Priority::Interactive));
    }
    let mut order = Vec::new();
    for _ in 0..40 {
        let id = *s.running.keys().next().unwrap();
        s.remove(id);
        order.push(id);
        step(&mut s);
    }
    assert_eq!(order[..3], [0, 3, 4]);
    let bulk = order.iter().position(|&id| id == 1).unwrap();
    assert!((10..20).contains(&bulk), "{order:?}");
}

#[test]
fn out_of_blocks_bulk_is_preempted_before_a_younger_urgent_one() {
    let mut s = scheduler(4, 200, 4);
    s.submit(0, prompt(0, 32), terms("a", Priority::Bulk));
    s.submit(1, prompt(1, 32), terms("a", Priority::Interactive));
    step(&mut s);
    assert_eq!(step(&mut s), [(1, 32, 1)]);
    assert_eq!((s.running(), s.preemptions()), (1, 1));
}

#[test]
fn room_for_output_is_kept_for_those_that_run() {
    let kv = KvCache::new(8, KeyMaker::new("m"), true);
    let limits = PlanLimits {
        running_max: 4,
        step_tokens: 200,
        output_room: 48,
    };
    let mut s = Scheduler::new(limits, kv);
    let generating = |output_max| Terms {
        output_max,
        ..Terms::default()
    };
    // Two blocks now and three to come; then two more would leave one for the first and none for itself.
    s.submit(0, prompt(0, 32), generating(1000));
    s.submit(1, prompt(1, 32), generating(1));
    s.submit(2, prompt(2, 32), generating(1));
    assert_eq!(step(&mut s), [(0, 0, 32), (1, 0, 32)]);
    assert_eq!((s.running(), s.waiting()), (2, 1));
}

#[test]
fn a_session_is_kept_from_the_end_of_its_turn_on() {
    let mut s = scheduler(2, 200, 6);
    let session = |name: &str, keep_ms| Terms {
        session: Some(name.into()),
        keep_ms,
        ..Terms::default()
    };
    s.submit(0, prompt(0, 32), session("a", Some(50)));
    s.advance(1000);
    step(&mut s);
    s.remove(0);
    s.kv().check_invariants();
    assert_eq!((s.kv().pool().cached(), s.kv().pool().kept()), (2, 2));
    s.advance(1049);
    assert_eq!(s.kv().pool().kept(), 2);
    s.advance(1050);
    assert_eq!(s.kv().pool().kept(), 0);
    assert!(s.keep("a", 10) && s.release("a") && !s.release("b"));
}
