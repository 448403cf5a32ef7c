use proptest::prelude::*;

use super::*;

/// `bound` in thousandths.
#[track_caller]
fn check(bound: u32, in_flight: u64, replicas: u64, expect: u64) {
    assert_eq!(
        LoadBound::from_thousandths(bound).capacity(in_flight, replicas),
        expect
    );
}

#[test]
fn capacity_is_the_bound_times_the_mean_rounded_up() {
    check(1_250, 0, 2, 1);
    check(1_250, 1, 2, 2);
    check(1_250, 7, 4, 3);
    check(1_000, 7, 4, 2);
    check(1_000, 8, 4, 3);
    check(2_000, 7, 4, 4);
    check(1_250, 0, 0, 2);
    check(u32::MAX, u64::MAX, 1, u64::MAX);
    assert_eq!(LoadBound::from_thousandths(0), LoadBound::MIN);
}

proptest! {
    #[test]
    fn somebody_has_room_always(bound in 0..3_000u32, loads in prop::collection::vec(0..5u64, 1..6)) {
        let capacity = LoadBound::from_thousandths(bound)
            .capacity(loads.iter().sum(), loads.len() as u64);
        prop_assert!(loads.iter().any(|load| *load < capacity));
    }
}
