use proptest::prelude::*;

use super::*;
use crate::{Policy, compile};

const LANES: &str = "version = 1\n[[pools]]\nname = \"big\"\nreplicas = [\"a\", \"b\"]\n[[lanes]]\nname = \"usual\"\n[[lanes]]\nname = \"long\"\npool = \"big\"\n";

fn policy(conditions: &[&str]) -> Policy {
    let rules = conditions.iter().enumerate().map(|(index, when)| {
        format!("[[rules]]\nname = \"r{index}\"\nwhen = '''{when}'''\nlane = \"long\"\n")
    });
    compile("a.toml", &(LANES.to_owned() + &rules.collect::<String>())).unwrap()
}

/// What the rules see.
const FACTS: Facts<'static> = Facts {
    model: "qwen3-8b",
    stream: true,
    prompt_tokens: 9_000,
    max_tokens: 0,
    messages: 3,
    has_tools: false,
    session: true,
};

fn header(name: &str) -> Option<&'static [u8]> {
    match name {
        "x-team" => Some(b"search"),
        "x-bytes" => Some(b"\xff"),
        _ => None,
    }
}

/// Which rule takes the request, and which fails at it.
#[track_caller]
fn check(conditions: &[&str], expect: (Option<&str>, Option<&str>)) {
    let policy = policy(conditions);
    let choice = policy.lanes.choose(&FACTS, header, || 0.25).unwrap();
    let name = |rule: Option<&Rule>| rule.map(|rule| rule.name.clone());
    let expect = (expect.0.map(str::to_owned), expect.1.map(str::to_owned));
    assert_eq!((name(choice.rule), name(choice.failed)), expect);
    let lane = if choice.rule.is_some() {
        "long"
    } else {
        "usual"
    };
    assert_eq!(&*choice.lane.name, lane);
    assert_eq!(choice.pool.is_some(), choice.rule.is_some());
}

#[test]
fn the_first_rule_that_holds_decides() {
    check(&[], (None, None));
    check(&["false", "true", "true"], (Some("r1"), None));
    check(
        &[
            "request.prompt_tokens > 9000",
            "request.prompt_tokens >= 9000",
        ],
        (Some("r1"), None),
    );
}

#[test]
fn conditions_see_the_request() {
    for holds in [
        "request.model == 'qwen3-8b' && request.model.startsWith(\"qwen\")",
        "request.model.endsWith('8b') && request.model.contains('n3') && size(request.model) == 8",
        "request.model in ['a', 'qwen3-8b'] && !(request.messages in [])",
        "request.stream && !request.has_tools && request.session",
        "request.messages == 3 && request.max_tokens == 0",
        "request.prompt_tokens + request.max_tokens * 2 - -1 == 9001",
        "request.prompt_tokens / 1000 == 9 && request.messages % 2 == 1",
        "(request.stream ? request.messages : 0) < 4",
        "request.header['x-team'] == 'search'",
        "request.header['x-none'] == '' && request.header['x-bytes'] == ''",
    ] {
        check(&[holds], (Some("r0"), None));
        check(&[&format!("!({holds})")], (None, None));
    }
}

#[test]
fn conditions_see_the_difficulty_and_it_is_worked_out_for_those_only() {
    for holds in [
        "difficulty > 0.2 && difficulty <= 0.25",
        "!(0.3 < difficulty) && request.stream",
    ] {
        check(&[holds], (Some("r0"), None));
        check(&[&format!("!({holds})")], (None, None));
    }
    let asked = |conditions: &[&str]| {
        let count = std::cell::Cell::new(0);
        let policy = policy(conditions);
        let judge = || {
            count.set(count.get() + 1);
            0.25
        };
        let choice = policy.lanes.choose(&FACTS, header, judge).unwrap();
        (count.get(), choice.difficulty)
    };
    assert_eq!(asked(&["true", "difficulty > 0.3"]), (0, None));
    assert_eq!(
        asked(&["difficulty > 0.3", "difficulty > 0.2"]),
        (1, Some(0.25))
    );
}

#[test]
fn the_policies_of_the_page_about_difficulty_are_good() {
    let page = include_str!("../../policies/README.md");
    let blocks: Vec<&str> = page.split("```toml\n").skip(1).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let (text, _) = block.split_once("```").unwrap();
        assert_eq!(compile("README.md", text).map(|_| ()), Ok(()));
    }
}

#[test]
fn a_rule_that_cannot_be_worked_out_does_not_hold() {
    check(&["1 / request.max_tokens == 1"], (None, Some("r0")));
    check(
        &["request.messages * 9223372036854775807 > 1", "true"],
        (Some("r1"), Some("r0")),
    );
}

#[test]
fn without_lanes_there_is_no_choice() {
    assert_eq!(
        Policy::default().lanes.choose(&FACTS, header, || 0.25),
        None
    );
}

proptest! {
    #[test]
    fn a_condition_that_is_taken_is_true_false_or_fails_by_arithmetic(text in r#"(request|model|messages|header|difficulty|x|true|7|0.5|'a'|==|<|&&|\|\||!|\+|/|in|\(|\)|\[|\]|\.|,|\?|:|é| ){0,12}"#) {
        if let Ok(condition) = Condition::compile(&text) {
            let mut request = condition::Request::new(&FACTS, std::iter::once(&condition), header);
            request.with_difficulty(0.25);
            prop_assert!(condition.holds(&request).is_some() || text.contains(['+', '/']), "{text}");
        }
    }
}

#[test]
fn lanes_lead_to_the_replicas_of_their_pools_or_to_all() {
    let check = |lanes: &str, expect: [bool; 2]| {
        let pool = "version = 1\n[[pools]]\nname = \"p\"\nreplicas = [\"a\"]\n";
        let policy = compile("a.toml", &format!("{pool}{lanes}")).unwrap();
        let lead_to = |name| policy.lanes.lead_to(ReplicaId::of(name));
        assert_eq!(["a", "b"].map(lead_to), expect, "{lanes}");
    };
    check("", [true, true]);
    check("[[lanes]]\nname = \"l\"\npool = \"p\"\n", [true, false]);
    check(
        "[[lanes]]\nname = \"l\"\npool = \"p\"\n[[lanes]]\nname = \"m\"\n",
        [true, true],
    );
}
