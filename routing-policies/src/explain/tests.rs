use super::*;
use crate::prefix::{Message, Scope, chain};
use crate::session::identify;

const NAMES: [&str; 3] = ["replica-0", "replica-1", "replica-2"];

/// A turn of the session `name`, or of none where it is empty, that says `messages`.
fn turn(name: &str, messages: &[&str]) -> Turn {
    let header =
        |header: &str| (header == "x-session-id" && !name.is_empty()).then_some(name.as_bytes());
    let session = identify(&Policy::default().session, "", "m", header, &[]).session;
    let said = messages.iter().map(|text| Message {
        bytes: text.as_bytes(),
        is_user: true,
    });
    let scope = Scope {
        model: "m",
        ..Scope::default()
    };
    let chain = chain(&scope, b"", said, 2_048);
    let block = |key: &PrefixKey| Block {
        key: key.get(),
        tokens: 100,
    };
    Turn {
        session: session.map(|(key, _)| key),
        blocks: chain.keys().iter().map(block).collect(),
        prompt_tokens: 100 * messages.len() as u32,
        chain,
    }
}

fn views(ready: [bool; 3]) -> Vec<ReplicaView> {
    let view = |(name, ready)| ReplicaView {
        id: ReplicaId::of(name),
        ready,
        in_flight: 0,
    };
    NAMES.into_iter().zip(ready).map(view).collect()
}

/// After `earlier` was answered by replica-1, `now` goes for `reason`, to replica-1 if `stays`.
#[track_caller]
fn check(earlier: Option<&Turn>, now: &Turn, ready: [bool; 3], reason: Reason, stays: bool) {
    let policy = Policy::default();
    let mut remembered = Remembered::new(NAMES.map(|name| (ReplicaId::of(name), 100_000)));
    let holder = ReplicaId::of("replica-1");
    if let Some(earlier) = earlier {
        remembered.answered(&policy, earlier, holder);
    }
    let why = remembered.explain(&policy, now, &views(ready));
    assert_eq!(why.reason, reason);
    assert_eq!(
        why.order.len(),
        ready.iter().filter(|ready| **ready).count()
    );
    if stays {
        assert_eq!(why.order[0].replica, holder);
        assert!(why.order[0].held_tokens > 0);
        let holds = |ranked: &&Ranked| ranked.held_tokens > 0;
        assert_eq!(why.order.iter().filter(holds).count(), 1);
    }
}

#[test]
fn what_was_seen_explains_where_a_turn_goes() {
    let all = [true; 3];
    let first = turn("s", &["hello"]);
    let second = turn("s", &["hello", "again"]);
    check(Some(&first), &second, all, Reason::PinHeld, true);
    let nameless = turn("", &["hello", "again"]);
    check(
        Some(&turn("", &["hello"])),
        &nameless,
        all,
        Reason::PrefixSeen,
        true,
    );
    check(
        Some(&first),
        &second,
        [true, false, true],
        Reason::PinBrokenGone,
        false,
    );
    check(None, &first, [false; 3], Reason::NoneReady, false);
}

#[test]
fn an_explanation_says_what_it_rests_on() {
    let policy = Policy::default();
    let mut remembered = Remembered::new(NAMES.map(|name| (ReplicaId::of(name), 100_000)));
    let holder = ReplicaId::of("replica-2");
    remembered.answered(&policy, &turn("s", &["hello"]), holder);
    let why = remembered.explain(&policy, &turn("s", &["hello", "again"]), &views([true; 3]));
    assert_eq!((why.pin, why.prefix), (Some(holder), Some((1, holder))));
    let other = remembered.explain(&policy, &turn("t", &["other"]), &views([true; 3]));
    assert_eq!((other.pin, other.prefix), (None, None));
}
