use expect_test::{Expect, expect};

use crate::problem::report;
use crate::schema::{changes, compile, compile_for};
use crate::{DEFAULT_POLICY, Policy};

const FLEET: [&str; 3] = ["replica-0", "replica-1", "gpu"];

#[track_caller]
fn check(text: &str, expect: &Expect) {
    let said = match compile_for(&FLEET, "a.toml", text) {
        Ok(policy) => format!("{:?}\n", policy.lanes),
        Err(problems) => report(&problems),
    };
    expect.assert_eq(&said);
}

#[test]
fn tables_that_fit_are_taken() {
    check(
        "version = 1\npools = [{ name = \"p\", replicas = [\"gpu\"] }]\n[[lanes]]\nname = \"l\"\npool = \"p\"\n[[rules]]\nname = \"r\"\nwhen = \"request.stream\"\nlane = \"l\"\n",
        &expect![[r#"
            Lanes { pools: [Pool { name: "p", replicas: ["gpu"], ids: [ReplicaId(2366179527480678300)] }], lanes: [Lane { name: "l", pool: Some("p"), thinking: None, budget: None, budget_max: None, effort: None, max_tokens: None, wishes: Honour }], rules: [Rule { name: "r", when: "request.stream", lane: "l" }] }
        "#]],
    );
}

#[test]
fn every_wrong_name_is_said_with_the_nearest() {
    check(
        r#"version = 1
[[pools]]
name = "big one"
replicas = ["replica-2", "gpu", "gpu", 7, "zebra"]
[[pools]]
replica = ["gpu"]
[[pools]]
name = "p"
replicas = []
[[lanes]]
name = "fast"
pool = "q"
[[lanes]]
name = "fast"
pool = "zebra"
[[rules]]
name = "r"
when = 1
lane = "fats"
[rules.x]
[[rules]]
"#,
        &expect![[r#"
            a.toml:3:8: `pools[0].name` is `"big one"`, expected a name of 1 to 64 letters, digits, `-`, `_` or `.`
            a.toml:4:13: `pools[0].replicas[0]` is `"replica-2"`, expected a replica that the gateway has; did you mean `replica-0`?
            a.toml:4:33: `pools[0].replicas[2]` is `"gpu"`, expected each replica once
            a.toml:4:40: `pools[0].replicas[3]` is `7`, expected a string
            a.toml:4:43: `pools[0].replicas[4]` is `"zebra"`, expected a replica that the gateway has; there is `replica-0`, `replica-1`, `gpu`
            a.toml:5:1: `pools[1].name` is missing
            a.toml:5:1: `pools[1].replicas` is missing
            a.toml:6:1: unknown key `pools[1].replica`; did you mean `replicas`?
            a.toml:9:12: `pools[2].replicas` is `[]`, expected a list of 1 to 1024 strings
            a.toml:12:8: `lanes[0].pool` is `"q"`, expected a pool of this file; did you mean `p`?
            a.toml:14:8: `lanes[1].name` is `"fast"`, expected each name once
            a.toml:15:8: `lanes[1].pool` is `"zebra"`, expected a pool of this file; there is `p`
            a.toml:18:8: `rules[0].when` is `1`, expected a string
            a.toml:19:8: `rules[0].lane` is `"fats"`, expected a lane of this file; there is `fast`
            a.toml:20:8: unknown key `rules[0].x`; expected one of `name`, `when`, `lane`
            a.toml:21:1: `rules[1].name` is missing
            a.toml:21:1: `rules[1].when` is missing
            a.toml:21:1: `rules[1].lane` is missing
            18 problems in 1 file; the gateway would keep its running policy
        "#]],
    );
    check(
        "version = 1\nlanes = 1\npools = [1]\n[[rules]]\nname = \"r\"\nwhen = \"true\"\nlane = \"l\"\n",
        &expect![[r#"
            a.toml:2:9: `lanes` is `1`, expected sections `[[lanes]]`
            a.toml:3:10: `pools[0]` is `1`, expected sections `[[pools]]`
            a.toml:7:8: `rules[0].lane` is `"l"`, expected a lane of this file; there is none
            3 problems in 1 file; the gateway would keep its running policy
        "#]],
    );
}

#[test]
fn every_wrong_condition_is_said_at_its_place() {
    let rules = [
        "request.modle == 'a'",
        "reqest.model == 'a'",
        "stream || zebra",
        "request.messages",
        "request.messages > '3'",
        "request.model == 3",
        "request.model.startWith('a')",
        "request.model.matches('a')",
        "startsWith(request.model, 'a')",
        "size(request.messages) > 1",
        "request.header['X-Team'] == 'a'",
        "request.header[request.model] == 'a'",
        "request.header.team == 'a'",
        "has(request.header.team)",
        "[1, 2].all(x, x > 1)",
        "request.model in ['a', 1]",
        "request.model in [1]",
        "request == request",
        "request.stream ? 1 : true",
        "request.messages > 1.5",
        "request.messages > ",
        "request.messages >> 1",
        "é == 'a' && request.modle == 'b'",
        "",
    ];
    let rules = rules.iter().enumerate().map(|(index, when)| {
        format!("[[rules]]\nname = \"r{index}\"\nlane = \"l\"\nwhen = \"{when}\"\n")
    });
    let text = "version = 1\n[[lanes]]\nname = \"l\"\n".to_owned() + &rules.collect::<String>();
    check(
        &text,
        &expect![[r#"
            a.toml:7:16: `rules[0].when` has an unknown name `request.modle`; expected one of `request.model`, `request.stream`, `request.prompt_tokens`, `request.max_tokens`, `request.messages`, `request.has_tools`, `request.session`, `request.header`
            a.toml:11:9: `rules[1].when` has an unknown name `reqest`; did you mean `request`?
            a.toml:15:9: `rules[2].when` has an unknown name `stream`; did you mean `request.stream`?
            a.toml:15:19: `rules[2].when` has an unknown name `zebra`; expected `difficulty` or one of `request.model`, `request.stream`, `request.prompt_tokens`, `request.max_tokens`, `request.messages`, `request.has_tools`, `request.session`, `request.header`
            a.toml:19:16: `rules[3].when` has a whole number as the condition; expected true or false
            a.toml:23:28: `rules[4].when` has a text as what `>` takes; expected a whole number
            a.toml:27:23: `rules[5].when` gives `==` a text and a whole number; expected two texts, two whole numbers, or two that are true or false
            a.toml:31:32: `rules[6].when` calls an unknown function `startWith`; did you mean `startsWith`?
            a.toml:35:30: `rules[7].when` calls an unknown function `matches`; expected one of `startsWith`, `endsWith`, `contains`, `size`
            a.toml:39:19: `rules[8].when` gives `startsWith` a text and a text; expected a call on a text with a text, as in `request.model.startsWith("a")`
            a.toml:43:13: `rules[9].when` gives `size` a whole number; expected one text, as in `size(request.model)`
            a.toml:47:23: `rules[10].when` uses `[…]` on something else than `request.header`, or with something else than a header's name; expected a lower-case name in quotes, as in `request.header["x-team"]`
            a.toml:51:23: `rules[11].when` uses `[…]` on something else than `request.header`, or with something else than a header's name; expected a lower-case name in quotes, as in `request.header["x-team"]`
            a.toml:55:23: `rules[12].when` reads a header with a dot; expected `request.header["team"]`
            a.toml:59:12: `rules[13].when` asks with `has`, but every name is always there; a header that the request lacks is `""`
            a.toml:63:19: `rules[14].when` has a loop, a map or a message, which conditions do not take; compare, combine with `&&`, `||`, `!`, or look in a list with `in`
            a.toml:67:26: `rules[15].when` has a whole number in a list of something else; expected all alike
            a.toml:71:23: `rules[16].when` gives `in` a text and a list; expected something and a list of its like
            a.toml:75:17: `rules[17].when` gives `==` the whole request and the whole request; expected two texts, two whole numbers, or two that are true or false
            a.toml:79:24: `rules[18].when` gives `?:` true or false and a whole number and true or false; expected a condition and two of one kind
            a.toml:83:16: `rules[19].when` has a whole number as what `>` takes; expected a number with a point
            a.toml:87:28: `rules[20].when` is no CEL expression: mismatched input '<EOF>'
            a.toml:91:27: `rules[21].when` is no CEL expression: extraneous input '>'
            a.toml:95:9: `rules[22].when` is no CEL expression: token recognition error at: 'é'
            a.toml:95:10: `rules[22].when` is no CEL expression: extraneous input '=='
            a.toml:99:9: `rules[23].when` is no CEL expression: mismatched input '<EOF>'
            26 problems in 1 file; the gateway would keep its running policy
        "#]],
    );
}

#[test]
fn a_place_in_a_condition_of_several_lines_is_said_and_one_with_escapes_begins_it() {
    let text = |when: &str| {
        format!(
            "version = 1\n[[lanes]]\nname = \"l\"\n[[rules]]\nname = \"r\"\nlane = \"l\"\nwhen = {when}\n"
        )
    };
    check(
        &text("\"\"\"\nrequest.stream &&\n  request.modle == ''\"\"\""),
        &expect![[r#"
            a.toml:9:10: `rules[0].when` has an unknown name `request.modle`; expected one of `request.model`, `request.stream`, `request.prompt_tokens`, `request.max_tokens`, `request.messages`, `request.has_tools`, `request.session`, `request.header`
            1 problem in 1 file; the gateway would keep its running policy
        "#]],
    );
    check(
        &text("\"\\u0072equest.modle == ''\""),
        &expect![[r#"
        a.toml:7:8: `rules[0].when` has an unknown name `request.modle`; expected one of `request.model`, `request.stream`, `request.prompt_tokens`, `request.max_tokens`, `request.messages`, `request.has_tools`, `request.session`, `request.header`
        1 problem in 1 file; the gateway would keep its running policy
    "#]],
    );
    check(
        &text("\"\"\"\nrequest.stream\n  && && true\"\"\""),
        &expect![[r#"
            a.toml:9:6: `rules[0].when` is no CEL expression: extraneous input '&&'
            1 problem in 1 file; the gateway would keep its running policy
        "#]],
    );
}

#[test]
fn one_past_each_bound_is_refused() {
    let lane = "version = 1\n[[lanes]]\nname = \"l\"\n";
    let rule = |name: usize, when: &str| {
        format!("[[rules]]\nname = \"r{name}\"\nlane = \"l\"\nwhen = \"{when}\"\n")
    };
    let compiles = |text: String| compile("a.toml", &text).is_ok();
    let rules = |count| {
        (0..count)
            .map(|name| rule(name, "true"))
            .collect::<String>()
    };
    assert!(compiles(lane.to_owned() + &rules(64)));
    assert!(!compiles(lane.to_owned() + &rules(65)));
    let long = |bytes: usize| rule(0, &format!("{:<bytes$}", "true"));
    assert!(compiles(lane.to_owned() + &long(1_024)));
    assert!(!compiles(lane.to_owned() + &long(1_025)));
    let sum = |terms: usize| rule(0, &format!("1{} > 0", "+1".repeat(terms)));
    assert!(compiles(lane.to_owned() + &sum(40)));
    assert!(!compiles(lane.to_owned() + &sum(60)));
    for deep in ["(", "!", "[", "-"] {
        assert!(!compiles(lane.to_owned() + &rule(0, &deep.repeat(1_000))));
    }
    let named =
        |chars: usize| format!("version = 1\n[[lanes]]\nname = \"{}\"\n", "l".repeat(chars));
    assert!(compiles(named(64)) && !compiles(named(65)));
}

#[test]
fn changed_tables_are_told_and_a_pool_is_held_against_a_fleet_only_where_there_is_one() {
    let new = "version = 1\n[[pools]]\nname = \"p\"\nreplicas = [\"x\"]\n[[lanes]]\nname = \"l\"\n";
    let new = compile("new.toml", new).unwrap();
    let changed: Vec<String> = changes(&Policy::default(), &new)
        .iter()
        .map(|change| format!("{} {} {}", change.key, change.old, change.new))
        .collect();
    assert_eq!(
        changed,
        [
            r#"pools [] [{"name": "p", "replicas": ["x"]}]"#,
            r#"lanes [] [{"name": "l"}]"#
        ]
    );
}

#[test]
fn the_example_in_the_default_file_compiles() {
    let (_, example) = DEFAULT_POLICY.split_once("# [[pools]]").unwrap();
    let (example, _) = example.split_once("\n\n").unwrap();
    let lines = example
        .lines()
        .map(|line| line.trim_start_matches('#').trim_start());
    let text: Vec<&str> = lines.collect();
    let text = format!("version = 1\n[[pools]]{}\n", text.join("\n"));
    let lanes = compile("default.toml", &text).unwrap().lanes;
    assert_eq!(
        (lanes.pools.len(), lanes.lanes.len(), lanes.rules.len()),
        (1, 3, 1)
    );
}
