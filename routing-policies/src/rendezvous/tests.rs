use proptest::prelude::*;

use super::*;

fn names(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("replica-{index}")).collect()
}

fn order_of(key: PlacementKey, names: &[String]) -> Vec<ReplicaId> {
    let mut ids: Vec<ReplicaId> = names.iter().map(|name| ReplicaId::of(name)).collect();
    order(key, &mut ids, |id| *id);
    ids
}

#[test]
fn orders_are_the_same_in_every_build() {
    let names = names(4);
    let orders: Vec<String> = ["a", "b", "c", "d", "e", "f"]
        .iter()
        .map(|body| {
            let ids = order_of(PlacementKey::of_body(body.as_bytes()), &names);
            let place = |id: &ReplicaId| names.iter().position(|name| ReplicaId::of(name) == *id);
            let places: Vec<String> = ids
                .iter()
                .map(|id| place(id).unwrap().to_string())
                .collect();
            format!("{body}:{}", places.concat())
        })
        .collect();
    expect_test::expect!["a:0123 b:0312 c:3021 d:2310 e:3120 f:2310"].assert_eq(&orders.join(" "));
}

#[test]
fn a_new_replica_takes_about_its_share_of_10_000_keys() {
    for count in 1..12 {
        let (before, after) = (names(count), names(count + 1));
        let moved = (0..10_000u32)
            .filter(|key| {
                let key = PlacementKey::of_body(&key.to_le_bytes());
                order_of(key, &before)[0] != order_of(key, &after)[0]
            })
            .count();
        assert!(
            moved <= 2 * 10_000 / (count + 1),
            "{moved} moved from {count} replicas"
        );
        assert!(
            moved >= 10_000 / (count + 1) / 2,
            "{moved} moved from {count} replicas"
        );
    }
}

proptest! {
    #[test]
    fn a_replica_that_leaves_moves_only_its_own_keys(
        body in any::<u64>(),
        count in 2..8usize,
        gone in any::<prop::sample::Index>(),
    ) {
        let key = PlacementKey::of_body(&body.to_le_bytes());
        let mut names = names(count);
        let before = order_of(key, &names);
        let gone = ReplicaId::of(&names.remove(gone.index(count)));
        let expect: Vec<ReplicaId> = before.into_iter().filter(|id| *id != gone).collect();
        prop_assert_eq!(order_of(key, &names), expect);
    }

    #[test]
    fn the_order_given_and_repetitions_mean_nothing(
        body in any::<u64>(),
        shuffled in Just(names(4)).prop_shuffle(),
        again in any::<prop::sample::Index>(),
    ) {
        let key = PlacementKey::of_body(&body.to_le_bytes());
        let mut twice = shuffled;
        twice.push(twice[again.index(4)].clone());
        prop_assert_eq!(order_of(key, &twice), order_of(key, &names(4)));
    }
}
