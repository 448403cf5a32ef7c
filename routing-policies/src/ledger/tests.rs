use proptest::prelude::*;

use super::*;

const PLAIN: Circumstances = Circumstances {
    reason: Reason::PinHeld,
    failed_over: false,
    restarted: false,
    changed: false,
};

fn believed(here_tokens: u32, most_tokens: u32) -> Believed {
    let mut believed = Believed::default();
    believed.here_tokens = here_tokens;
    believed.most_tokens = most_tokens;
    believed
}

/// A prompt of 10,000 tokens of which `here` were believed to be cached where it went, `most` somewhere, and `cached` were: its misses
/// are `expect`.
#[track_caller]
fn check(
    circumstances: Circumstances,
    (here, most, cached): (u32, u32, u64),
    expect: &[(Miss, u64)],
) {
    let settled = settle(circumstances, 10_000, &believed(here, most), 10_000, cached);
    let missed: Vec<_> = Miss::ALL
        .into_iter()
        .map(|miss| (miss, settled.missed[miss as usize]))
        .filter(|(_, tokens)| *tokens > 0)
        .collect();
    assert_eq!(missed, expect);
}

#[test]
fn each_missed_token_has_the_cause_that_took_it() {
    use Miss::*;
    check(PLAIN, (0, 0, 0), &[(NewPrefix, 10_000)]);
    check(PLAIN, (8_000, 8_000, 8_000), &[(NewPrefix, 2_000)]);
    // An engine's own answer is cached too: more than was believed.
    check(PLAIN, (8_000, 8_000, 9_000), &[(NewPrefix, 1_000)]);
    // A part of an engine's block is no eviction.
    check(PLAIN, (8_000, 8_000, 7_950), &[(NewPrefix, 2_050)]);
    let evicted = [(NewPrefix, 2_000), (Evicted, 5_000)];
    check(PLAIN, (8_000, 8_000, 3_000), &evicted);
    let moved = Circumstances {
        reason: Reason::PinMovedForLoad,
        ..PLAIN
    };
    let moved_by = [(NewPrefix, 2_000), (MovedByLoad, 7_000)];
    check(moved, (1_000, 8_000, 1_000), &moved_by);
    let gone = Circumstances {
        reason: Reason::PinBrokenGone,
        ..PLAIN
    };
    check(
        gone,
        (0, 8_000, 0),
        &[(NewPrefix, 2_000), (Failover, 8_000)],
    );
    let failed_over = Circumstances {
        failed_over: true,
        ..PLAIN
    };
    let failed = [(NewPrefix, 2_000), (Failover, 8_000)];
    check(failed_over, (0, 8_000, 0), &failed);
    let restarted = Circumstances {
        restarted: true,
        ..PLAIN
    };
    check(restarted, (0, 0, 0), &[(Restarted, 10_000)]);
    let changed = Circumstances {
        changed: true,
        ..PLAIN
    };
    check(changed, (100, 100, 100), &[(ChangedPrompt, 9_900)]);
}

#[test]
fn a_wrong_estimate_of_the_length_is_no_wrong_belief() {
    // 8,000 of an estimated 10,000 tokens; the replica counts 5,000 in all and finds 4,000.
    let settled = settle(PLAIN, 10_000, &believed(8_000, 8_000), 5_000, 4_000);
    assert_eq!((settled.predicted, settled.delivered), (4_000, 4_000));
}

#[test]
fn a_mistake_is_forgotten_within_twenty_requests() {
    let mut ledger = Ledger::default();
    let mut add = |cached| {
        ledger.add(&settle(PLAIN, 100, &believed(90, 90), 100, cached));
        ledger.error()
    };
    assert!(add(0) > 0.8, "all of it was wrong");
    let errors: Vec<f64> = (0..20).map(|_| add(90)).collect();
    assert!(errors[19] < 0.02, "{errors:?}");
    assert!(Ledger::default().error() < 1e-9);
}

proptest! {
    #[test]
    fn delivered_and_missed_make_the_prompt(
        estimated in 0..2_000u32, here in 0..3_000u32, most in 0..3_000u32, prompt in 0..2_000u64, cached in 0..3_000u64,
        restarted: bool, changed: bool,
    ) {
        let circumstances = Circumstances { restarted, changed, ..PLAIN };
        let settled = settle(circumstances, estimated, &believed(here, most), prompt, cached);
        prop_assert_eq!(settled.delivered + settled.missed.iter().sum::<u64>(), prompt);
        prop_assert!(settled.predicted <= prompt);
    }
}

#[test]
fn an_account_tells_lanes_apart_up_to_the_bound() {
    let mut account = Account::default();
    let off = |predicted| Settled {
        prompt: 100,
        predicted,
        delivered: 50,
        missed: [0; Miss::ALL.len()],
    };
    for lane in 0..=LANES_MAX {
        account.add(Some(&lane.to_string().into()), &off(60));
    }
    account.add(None, &off(60));
    account.add(Some(&"0".into()), &off(50));
    assert!((account.error_of("1") - 0.1).abs() < 1e-9);
    assert!(account.error_of("0") < 0.06);
    let past = LANES_MAX.to_string();
    assert!(account.error_of(&past).abs() < 1e-9);
    assert!(account.error() > 0.08 && account.error() < 0.1);
}
