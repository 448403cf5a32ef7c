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

const THINK: &str = r#"
version = 1
[[lanes]]
name = "quick"
thinking = "off"
WISHES
[[lanes]]
name = "think"
thinking = "on"
budget = 100
budget_max = 500
effort = "medium"
WISHES
[[lanes]]
name = "free"
[[rules]]
name = "free"
when = 'request.messages > 5'
lane = "free"
[[rules]]
name = "hard"
when = 'difficulty > 0.4'
lane = "think"
"#;

fn think(wishes: &str) -> Policy {
    let wishes = format!("wishes = \"{wishes}\"");
    compile("a.toml", &THINK.replace("WISHES", &wishes)).unwrap()
}

/// Lane, reason, thinking, budget, effort.
fn settled(
    policy: &Policy,
    difficulty: f64,
    wish: &Wish<'_>,
    past: &Past,
) -> Result<String, Refused> {
    let lanes = &policy.lanes;
    let choice = lanes.choose(&FACTS, header, || difficulty).unwrap();
    let to = lanes.settle(&choice, wish, past)?;
    let thinking = to.thinking.map_or("-", |on| if on { "on" } else { "off" });
    let budget = to
        .budget
        .map_or("-".to_owned(), |tokens| tokens.to_string());
    let effort = to.effort.map_or("-", Effort::as_str);
    assert_eq!(to.capped, to.reason == LaneReason::WishCapped);
    assert_eq!(lanes.lanes[to.index].name, to.lane.name);
    let (lane, reason) = (&to.lane.name, to.reason.as_str());
    Ok(format!("{lane} {reason} {thinking} {budget} {effort}"))
}

const NONE: Wish<'static> = Wish {
    lane: None,
    thinking: None,
    budget: None,
    effort: None,
};
const QUICK: &str = "quick difficulty off - -";
const DEEP: &str = "think difficulty on 100 medium";
const CAPPED: &str = "quick wish_capped off - -";

/// What becomes of a wish in lanes that honour, cap and refuse it.
#[track_caller]
fn wished(difficulty: f64, wish: Wish<'_>, expect: [Result<&str, Refused>; 3]) {
    let expect = expect.map(|one| one.map(str::to_owned));
    let found = ["honour", "cap", "refuse"]
        .map(|wishes| settled(&think(wishes), difficulty, &wish, &Past::default()));
    assert_eq!(found, expect, "{wish:?}");
}

#[test]
fn a_wish_for_thinking_or_a_lane_is_followed_capped_or_refused() {
    let thinking = |wanted| Wish {
        thinking: Some(wanted),
        ..NONE
    };
    let lane = |name| Wish {
        lane: Some(name),
        ..NONE
    };
    let refused = |lane: &str, wanted| Err(Refused::Thinking(lane.to_owned(), wanted));
    let refused_lane = |lane: &str| Err(Refused::Lane(lane.to_owned()));
    let (easy, hard) = (0.1, 0.9);
    let same = |text| [Ok(text), Ok(text), Ok(text)];
    wished(easy, NONE, same(QUICK));
    wished(hard, NONE, same(DEEP));
    wished(hard, thinking(true), same(DEEP));
    wished(easy, thinking(false), same(QUICK));
    let on = Ok("think wish on 100 medium");
    wished(
        easy,
        thinking(true),
        [on, Ok(CAPPED), refused("quick", true)],
    );
    let off = Ok("quick wish off - -");
    wished(
        hard,
        thinking(false),
        [off.clone(), off, refused("think", false)],
    );
    let deep = Ok("think lane_named on 100 medium");
    wished(
        easy,
        lane("think"),
        [deep, Ok(CAPPED), refused_lane("think")],
    );
    let quick = Ok("quick lane_named off - -");
    wished(
        hard,
        lane("quick"),
        [quick.clone(), quick, refused_lane("quick")],
    );
    wished(hard, lane("think"), same(DEEP));
    let unknown = settled(&think("honour"), easy, &lane("deep"), &Past::default());
    let why = unknown.unwrap_err().to_string();
    assert!(
        why.contains("the routing policy has `quick`, `think`, `free`"),
        "{why}"
    );
}

#[test]
fn a_wish_for_a_budget_or_an_effort_is_followed_capped_or_refused() {
    let budget = |tokens| Wish {
        budget: Some(tokens),
        ..NONE
    };
    let effort = |effort| Wish {
        effort: Some(effort),
        ..NONE
    };
    let same = |text| [Ok(text), Ok(text), Ok(text)];
    wished(0.9, budget(7), same("think difficulty on 7 medium"));
    for tokens in [501, NO_LIMIT] {
        let most = Ok("think wish_capped on 500 medium");
        let refused = Err(Refused::Budget("think".to_owned(), 500));
        wished(0.9, budget(tokens), [most.clone(), most, refused]);
    }
    wished(
        0.9,
        effort(Effort::Low),
        same("think difficulty on 100 low"),
    );
    let high = Ok("think difficulty on 100 high");
    let medium = Ok("think wish_capped on 100 medium");
    let refused = Err(Refused::Effort("think".to_owned(), Effort::Medium));
    wished(0.9, effort(Effort::High), [high, medium, refused]);
}

#[test]
fn a_lane_that_says_nothing_is_as_the_client_says() {
    let policy = compile("a.toml", "version = 1\n[[lanes]]\nname = \"free\"\n").unwrap();
    let wish = Wish {
        thinking: Some(true),
        budget: Some(9),
        effort: Some(Effort::Max),
        lane: None,
    };
    let past = Past::default();
    assert_eq!(
        settled(&policy, 0.0, &wish, &past).unwrap(),
        "free first_lane on 9 max"
    );
    assert_eq!(
        settled(&policy, 0.0, &Wish::default(), &past).unwrap(),
        "free first_lane - - -"
    );
    let endless = Wish {
        budget: Some(NO_LIMIT),
        ..Wish::default()
    };
    assert_eq!(
        settled(&policy, 0.0, &endless, &past).unwrap(),
        "free first_lane - - -"
    );
}

#[test]
fn a_session_keeps_its_lane_in_a_tool_loop_and_goes_only_up_where_the_effort_stands_first() {
    let policy = think("honour");
    let check = |difficulty, past: Past, expect: &str| {
        let said = settled(&policy, difficulty, &Wish::default(), &past).unwrap();
        assert!(said.starts_with(expect), "{said}");
    };
    let was = |lane| Past {
        lane: Some(lane),
        ..Past::default()
    };
    let (quick, deep) = (0, 1);
    check(0.1, was(deep), "quick difficulty ");
    check(
        0.1,
        Past {
            tool_loop: true,
            ..was(deep)
        },
        "think tool_loop",
    );
    check(
        0.1,
        Past {
            tool_loop: true,
            ..Past::default()
        },
        "quick difficulty ",
    );
    check(
        0.1,
        Past {
            tool_loop: true,
            ..was(63)
        },
        "quick difficulty ",
    );
    check(
        0.1,
        Past {
            effort_in_head: true,
            ..was(deep)
        },
        "think effort_kept",
    );
    check(
        0.9,
        Past {
            effort_in_head: true,
            ..was(quick)
        },
        "think difficulty ",
    );
    check(
        0.9,
        Past {
            steady: true,
            ..was(quick)
        },
        "think difficulty_kept",
    );
}

#[test]
fn a_difficulty_that_moves_by_less_than_the_margin_is_not_seen() {
    let check = |now, earlier, margin, expect| {
        let earlier: Option<f64> = earlier;
        let (step, kept) = steady(difficulty_step(now), earlier.map(difficulty_step), margin);
        assert_eq!((difficulty_of(step), kept), expect);
    };
    check(0.45, None, 0.1, (0.45, false));
    check(0.45, Some(0.38), 0.1, (0.38, true));
    check(0.45, Some(0.45), 0.1, (0.45, false));
    check(0.48, Some(0.38), 0.1, (0.48, false));
    check(0.45, Some(0.38), 0.0, (0.45, false));
    check(0.0, Some(1.0), 1.0, (0.0, false));
}

#[test]
fn keys_of_a_lane_that_contradict_each_other_are_said() {
    let text = "version = 1\n[[lanes]]\nname = \"a\"\nthinking = \"offf\"\nbudget = 9\nbudget_max = 8\neffort = \"none\"\nmax_tokens = 0\nwishes = \"capp\"\n[[lanes]]\nname = \"b\"\nthinking = \"off\"\nbudget = 1\n";
    let problems = compile("a.toml", text).unwrap_err();
    let said: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}: {}", problem.line, problem.message))
        .collect();
    let expect = [
        "4: `lanes[0].thinking` is `\"offf\"`, expected one of `on`, `off`; did you mean `off`?",
        "5: `lanes[0].budget` is 9, expected at most `budget_max` = 8",
        "7: `lanes[0].effort` is `\"none\"`, expected one of `minimal`, `low`, `medium`, `high`, `xhigh`, `max`",
        "8: `lanes[0].max_tokens` is `0`, expected a whole number of tokens from 1 to 10000000",
        "9: `lanes[0].wishes` is `\"capp\"`, expected one of `honour`, `cap`, `refuse`; did you mean `cap`?",
        "13: `lanes[1].budget` does nothing with `thinking = \"off\"`; expected one of the two",
    ];
    assert_eq!(said, expect);
}
