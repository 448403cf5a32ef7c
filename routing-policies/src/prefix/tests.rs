use proptest::prelude::*;

use super::*;

/// A conversation as its messages: those that begin with `u` are the user's.
fn of(scope: (&str, &str, Option<&str>, &str), messages: &[&str]) -> Chain {
    let (tenant, model, salt, tools) = scope;
    let messages = messages.iter().map(|m| Message {
        bytes: m.as_bytes(),
        is_user: m.starts_with('u'),
    });
    let scope = Scope {
        tenant,
        model,
        salt,
        effort: None,
    };
    chain(&scope, tools.as_bytes(), messages, BLOCK_BYTES)
}

const BLOCK_BYTES: u32 = 8;

const SCOPE: (&str, &str, Option<&str>, &str) = ("t", "m", None, "");

/// Turn 2 is looked up where only turn 1 is remembered; `expect` is the number of messages found.
#[track_caller]
fn check(turn_1: &[&str], turn_2: &[&str], expect: Option<usize>) {
    let remembered = of(SCOPE, turn_1).last();
    let found = of(SCOPE, turn_2).deepest(|key| (Some(key) == remembered).then_some(()));
    assert_eq!(found.map(|(messages, ())| messages), expect);
}

#[test]
fn a_turn_finds_the_turn_before_it() {
    check(&["s", "u1"], &["s", "u1", "a1", "u2"], Some(2));
    check(
        &["s", "u1", "a1", "u2"],
        &["s", "u1", "a1", "u2", "a2", "u3"],
        Some(4),
    );
    check(&["s", "u1"], &["s", "u1"], Some(2));
    check(&["s", "u1"], &["s", "u2"], None);
    check(&["s", "u1"], &["s2", "u1", "a1", "u2"], None);
    check(&["s", "u1"], &["u1", "s", "a1", "u2"], None);
    check(&["s", "u1"], &["s"], None);
    check(&[], &["s"], None);
}

#[test]
fn what_an_engine_keeps_apart_has_other_keys() {
    let messages = ["s", "u1"];
    let scopes = [
        SCOPE,
        ("t2", "m", None, ""),
        ("t", "m2", None, ""),
        ("t", "m", Some(""), ""),
        ("t", "m", Some("salt"), ""),
        ("t", "m", None, "[]"),
        ("tm", "", None, ""),
    ];
    let keys = scopes.map(|scope| of(scope, &messages).last());
    for (index, key) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(key), "scope {index} shares a key");
    }
}

#[test]
fn the_root_is_the_same_in_every_turn() {
    let root = of(SCOPE, &["s", "u1"]).root();
    assert_eq!(of(SCOPE, &["s", "u1", "a1", "u2"]).root(), root);
    assert_eq!(of(SCOPE, &["s", "u1"]).keys()[1], root);
    assert_ne!(of(SCOPE, &["s", "u2"]).root(), root);
    assert_eq!(
        of(SCOPE, &["s", "a"]).root(),
        of(SCOPE, &["s", "a"]).last().unwrap()
    );
    assert_eq!(of(SCOPE, &[]).last(), None);
    assert_ne!(of(SCOPE, &[]).root(), of(("t2", "m", None, ""), &[]).root());
}

#[test]
fn chains_are_the_same_in_every_build() {
    let chain = of(("tenant", "model", Some("salt"), "[]"), &["s", "u1", "a1"]);
    let keys: Vec<String> = chain
        .keys()
        .iter()
        .map(|key| format!("{:x}", key.get()))
        .collect();
    expect_test::expect!["224bb6cc0da99969 809b03422c10f955 390f3dc0e0a28c08"]
        .assert_eq(&keys.join(" "));
}

#[test]
fn the_search_backwards_is_bounded() {
    let messages = vec!["u"; LOOKBACK_MESSAGES_MAX + 9];
    let mut tried = 0;
    let found = of(SCOPE, &messages).deepest(|_| {
        tried += 1;
        None::<()>
    });
    assert_eq!((found, tried), (None, LOOKBACK_MESSAGES_MAX));
}

/// Two messages share `shared` blocks, and the second's are `expect` tokens long at two bytes each.
#[track_caller]
fn check_blocks(first: &str, second: &str, shared: usize, expect: &[u32]) {
    let blocks = |text: &str| of(SCOPE, &[text]).blocks(2.0);
    let (first, second) = (blocks(first), blocks(second));
    let same = first.iter().zip(&second).take_while(|(a, b)| a == b);
    assert_eq!(same.count(), shared);
    let tokens: Vec<u32> = second.iter().map(|block| block.tokens).collect();
    assert_eq!(tokens, expect);
}

#[test]
fn a_shared_beginning_inside_a_long_message_is_found_block_by_block() {
    check_blocks("", "", 0, &[]);
    check_blocks("u234567", "u234567", 1, &[4]);
    check_blocks("u2345678abcdefghXY", "u2345678abcdefghZ", 2, &[4, 4, 1]);
    check_blocks("u2345678abcdefghXY", "u2345678abcdefgh", 2, &[4, 4]);
    check_blocks("X2345678abcdefgh", "u2345678abcdefgh", 0, &[4, 4]);
}

#[test]
fn blocks_are_bounded_and_the_rest_counts_as_text() {
    let text = "u".repeat(BLOCK_BYTES as usize * (BLOCKS_MAX + 3));
    let chain = of(SCOPE, &[&text]);
    assert_eq!(chain.blocks(4.0).len(), BLOCKS_MAX);
    assert_eq!(chain.tokens(4.0), 2 * (BLOCKS_MAX as u32 + 3));
    assert_eq!(chain.bytes(), text.len() as u64);
}

#[test]
fn long_messages_have_the_same_keys_in_every_build() {
    let chain = of(SCOPE, &["u2345678abcdefghXY"]);
    let keys: Vec<String> = chain
        .blocks(4.0)
        .iter()
        .map(|block| format!("{:x}", block.key))
        .collect();
    assert_eq!(
        keys.last().map(String::as_str),
        Some(&*format!("{:x}", chain.last().unwrap().get()))
    );
    expect_test::expect!["a4d5d7270c38d265 434c38ac05ddb5e8 163d656bb9ad405d"]
        .assert_eq(&keys.join(" "));
}

/// The message and the byte where the block behind the first `blocks` begins.
#[track_caller]
fn check_place(tools: &str, blocks: usize, expect: Option<(Option<usize>, u64)>) {
    let messages = ["s2345678abcdefgh", "u1", "a2345678X"];
    let chain = of(("t", "m", None, tools), &messages);
    let place = chain.place(blocks);
    assert_eq!(place.map(|place| (place.message, place.byte)), expect);
}

#[test]
fn a_block_tells_the_message_and_the_byte_where_it_begins() {
    let places = [(0, 0), (0, 8), (1, 0), (2, 0), (2, 8)];
    for (blocks, (message, byte)) in places.into_iter().enumerate() {
        check_place("", blocks, Some((Some(message), byte)));
        check_place("[1234567]", blocks + 2, Some((Some(message), byte)));
    }
    check_place("", 5, None);
    check_place("[1234567]", 0, Some((None, 0)));
    check_place("[1234567]", 1, Some((None, 8)));
    check_place("[1234567]", 7, None);
}

proptest! {
    #[test]
    fn keys_are_shared_exactly_as_far_as_the_messages_are(
        a in prop::collection::vec("[ua]{1,2}", 0..6),
        b in prop::collection::vec("[ua]{1,2}", 0..6),
    ) {
        let chain_of = |messages: &[String]| {
            of(SCOPE, &messages.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let (keys_a, keys_b) = (chain_of(&a), chain_of(&b));
        let shared = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
        for index in 0..a.len().min(b.len()) {
            prop_assert_eq!(keys_a.keys()[index] == keys_b.keys()[index], index < shared);
        }
    }
}

#[test]
fn an_effort_at_the_head_of_the_prompt_keeps_apart() {
    let key = |effort| {
        let scope = Scope {
            model: "m",
            effort,
            ..Scope::default()
        };
        let said = Message {
            bytes: b"u1",
            is_user: true,
        };
        chain(&scope, b"", [said], BLOCK_BYTES).root()
    };
    let keys = [None, Some(""), Some("low"), Some("high")].map(key);
    for (index, key) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(key), "effort {index} shares a key");
    }
}
