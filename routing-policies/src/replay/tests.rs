use super::*;
use crate::placement::{Block, Settings};
use proptest::prelude::*;

const BLOCK: u32 = 100;

fn request(at_s: f64, session: u64, blocks: &[u64], prompt_tokens: u32) -> Request {
    let block = |&key| Block { key, tokens: BLOCK };
    Request {
        at_s,
        prompt_tokens,
        output_tokens: 50,
        session,
        blocks: blocks.iter().map(block).collect(),
    }
}

fn setup(replicas: usize, cache_tokens: u64) -> Setup {
    Setup {
        replicas,
        cache_tokens,
        block_tokens: BLOCK,
        offered_load: 0.5,
    }
}

/// All on the first replica.
struct First;

impl Placement for First {
    fn pick(&mut self, _: usize, _: &Request, _: Sight<'_>) -> usize {
        0
    }
}

#[test]
fn a_small_trace_comes_out_as_by_hand() {
    // 600 tokens in 4 s at load 0.5 on one replica: 300 tokens a second.
    let requests = [
        request(0.0, 1, &[1, 2, 3], 300), // 1.015 s of prefill
        request(0.5, 1, &[1, 2], 150),    // cached down to 0: waits 0.515 s, then 15 ms
        request(4.0, 2, &[4, 5], 150),    // 0.515 s
    ];
    let outcome = run(&setup(1, 1_000), &requests, &mut First);
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    near(outcome.hit, 150.0 / 600.0);
    near(outcome.of_pool, 1.0);
    near(outcome.imbalance, 1.0);
    near(outcome.ttft_mean_s, (1.015 + 0.53 + 0.515) / 3.0);
    near(outcome.ttft_p50_s, 0.53);
    near(outcome.ttft_p90_s, 1.015);
}

#[test]
fn a_cache_of_one_block_holds_the_root() {
    let requests = [
        request(0.0, 1, &[1, 2], 200),
        request(1.0, 1, &[1, 2], 200),
        request(2.0, 1, &[3], 100),
        request(3.0, 1, &[1], 100),
    ];
    let outcome = run(&setup(1, 100), &requests, &mut First);
    assert!(
        (outcome.hit - 100.0 / 600.0).abs() < 1e-9,
        "{}",
        outcome.hit
    );
}

#[test]
fn all_on_one_of_two_replicas_is_an_imbalance_of_two() {
    let requests: Vec<Request> = (0..10)
        .map(|n| request(f64::from(n), 1, &[u64::from(n as u32)], 100))
        .collect();
    let outcome = run(&setup(2, 1_000), &requests, &mut First);
    assert!((outcome.imbalance - 2.0).abs() < 1e-9);
}

#[test]
fn ties_are_spread_and_halves_are_cut_by_time() {
    let mut requests: Vec<Request> = [0.0, 3.0, 3.0, 3.0, 9.0]
        .map(|at_s| request(at_s, 0, &[1], 1))
        .to_vec();
    arrivals(&mut requests, 3.0, 2.0);
    let times: Vec<f64> = requests.iter().map(|r| r.at_s).collect();
    assert_eq!(times, [0.0, 1.5, 2.0, 2.5, 4.5]);
    let (first, second) = halves(&requests);
    assert_eq!((first.len(), second.len()), (3, 2));
    assert_eq!(halves(&requests[..1]), (&requests[..1], &[][..]));
}

#[test]
fn every_baseline_has_a_name_and_an_unknown_name_has_none() {
    for name in baseline::NAMES {
        assert!(
            baseline::named(name, &setup(2, 1_000), 1).is_some(),
            "{name}"
        );
    }
    assert!(baseline::named("best", &setup(2, 1_000), 1).is_none());
}

/// Passes everything on and counts it.
struct Counting<'p> {
    inner: &'p mut dyn Placement,
    sent: usize,
    first_tokens: Vec<usize>,
    last_s: f64,
}

impl Placement for Counting<'_> {
    fn pick(&mut self, place: usize, request: &Request, sight: Sight<'_>) -> usize {
        let open: u32 = sight.in_flight().iter().sum();
        assert!(
            open as usize <= self.sent,
            "no more in flight than were sent"
        );
        self.inner.pick(place, request, sight)
    }

    fn routed(&mut self, place: usize, request: &Request, replica: usize) {
        self.sent += 1;
        self.inner.routed(place, request, replica);
    }

    fn first_token(&mut self, event: Event, request: &Request, served: Served) {
        assert!(event.at_s >= self.last_s, "first tokens come in order");
        assert!(served.cached_tokens <= request.prompt_tokens);
        assert!((event.at_s - request.at_s - served.ttft_s).abs() < 1e-9);
        self.last_s = event.at_s;
        self.first_tokens.push(event.request);
        self.inner.first_token(event, request, served);
    }
}

proptest! {
    #[test]
    fn every_placement_conserves_requests_and_repeats_itself(
        trace in prop::collection::vec((0u32..50, 0u64..4, 1usize..4), 2..40),
        replicas in 1usize..4,
        name in 0usize..=baseline::NAMES.len(),
    ) {
        let mut requests: Vec<Request> = trace
            .iter()
            .map(|&(at, session, depth)| {
                let blocks: Vec<u64> = (0..depth as u64).map(|d| session * 10 + d).collect();
                request(f64::from(at) / 10.0, session, &blocks, depth as u32 * BLOCK)
            })
            .collect();
        requests.push(request(6.0, 0, &[0], 100));
        arrivals(&mut requests, 0.1, 1.0);
        let setup = setup(replicas, 300);
        let outcome = || {
            let mut placement: Box<dyn Placement> = match baseline::NAMES.get(name) {
                Some(name) => baseline::named(name, &setup, 7).expect("a known name"),
                None => Box::new(Ruled::new(&setup, Settings::default(), 7)),
            };
            let mut counting = Counting { inner: &mut *placement, sent: 0, first_tokens: Vec::new(), last_s: 0.0 };
            let outcome = run(&setup, &requests, &mut counting);
            assert_eq!(counting.sent, requests.len());
            counting.first_tokens.sort_unstable();
            counting.first_tokens.dedup();
            assert!(counting.first_tokens.len() <= requests.len());
            outcome
        };
        let once = outcome();
        prop_assert_eq!(once, outcome());
        prop_assert!((0.0..=1.0).contains(&once.hit));
        prop_assert!(once.imbalance >= 1.0 - 1e-9 && once.imbalance <= replicas as f64 + 1e-9);
        prop_assert!(once.ttft_p50_s >= OVERHEAD_S - 1e-9 && once.ttft_p50_s <= once.ttft_p90_s);
    }
}
