use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(key: impl std::fmt::LowerHex, expect: &Expect) {
    expect.assert_eq(&format!("{key:x}"));
}

#[test]
fn keys_are_the_same_in_every_build() {
    // The published xxh3 of nothing.
    check(ReplicaId::of("").get(), &expect!["2d06800538d394c2"]);
    check(
        ReplicaId::of("replica-0").get(),
        &expect!["907c47084a78106"],
    );
    check(
        SessionKey::of(&[b"tenant", b"model"]).get(),
        &expect!["2792cbd50ca11d9dfb68137b262b2136"],
    );
    check(
        PrefixKey::start(&[b"tenant", b"model"]).get(),
        &expect!["c8290f428d5420e8"],
    );
    check(
        PrefixKey::start(&[]).then(b"hello").get(),
        &expect!["305a05347b097905"],
    );
    let key = PlacementKey::of_body(b"{}");
    check(
        key.score(ReplicaId::of("replica-0")),
        &expect!["e34060ae5b2b4a25"],
    );
}

#[test]
fn fields_do_not_run_into_each_other() {
    assert_ne!(
        SessionKey::of(&[b"ab", b"c"]),
        SessionKey::of(&[b"a", b"bc"])
    );
    assert_ne!(SessionKey::of(&[b"ab"]), SessionKey::of(&[b"ab", b""]));
    assert_ne!(
        PrefixKey::start(&[]).then(b"ab"),
        PrefixKey::start(&[]).then(b"a").then(b"b")
    );
}
