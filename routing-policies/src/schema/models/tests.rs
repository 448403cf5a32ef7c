use expect_test::{Expect, expect};

use crate::Policy;
use crate::problem::report;
use crate::schema::{changes, compile};

#[track_caller]
fn check(text: &str, expect: &Expect) {
    let said = match compile("a.toml", &format!("version = 1\n{text}")) {
        Ok(policy) => format!("{:?}\n", policy.models),
        Err(problems) => report(&problems),
    };
    expect.assert_eq(&said);
}

const GOOD: &str = r#"
[[models]]
name = "Qwen/*"
family = "house"
reasoning = "hidden"
reasoning_field = "both"
thinking = false
thinking_tokens_max = 0x100
budget = "emulated"
[[models]]
name = "*"
[[families]]
name = "house"
tags = { open = ["<a>"], reopen = true }
"#;

#[test]
fn models_and_families_that_fit_are_taken() {
    check(
        GOOD,
        &expect![[r#"
            Models { rules: [ModelRule { name: "Qwen/*", family: Some("house"), reasoning: Hidden, field: Both, thinking: Some(false), thinking_tokens_max: Some(256), budget: Emulated }, ModelRule { name: "*", family: None, reasoning: Field, field: ReasoningContent, thinking: None, thinking_tokens_max: None, budget: Native }], families: [FamilyRow { name: "house", says: "{\"name\": \"house\", \"tags\": {\"open\": [\"<a>\"], \"reopen\": true}}" }] }
        "#]],
    );
}

#[test]
fn every_wrong_word_is_said() {
    check(
        r#"
[[models]]
family = 1
reasoning = "hiden"
reasoning_field = "thoughts"
thinking = "on"
thinking_tokens_max = -1
budget = "exact"
shown = true
[[models]]
name = ""
[[families]]
style = "none"
"#,
        &expect![[r#"
            a.toml:3:1: `models[0].name` is missing
            a.toml:4:10: `models[0].family` is `1`, expected a string
            a.toml:5:13: `models[0].reasoning` is `"hiden"`, expected one of `field`, `hidden`, `summary`; did you mean `hidden`?
            a.toml:6:19: `models[0].reasoning_field` is `"thoughts"`, expected one of `reasoning_content`, `reasoning`, `both`
            a.toml:7:12: `models[0].thinking` is `"on"`, expected `true` or `false`
            a.toml:8:23: `models[0].thinking_tokens_max` is `-1`, expected a whole number of tokens from 0 to 10000000
            a.toml:9:10: `models[0].budget` is `"exact"`, expected one of `native`, `guarded`, `emulated`
            a.toml:10:1: unknown key `models[0].shown`; expected one of `name`, `family`, `reasoning`, `reasoning_field`, `thinking`, `thinking_tokens_max`, `budget`
            a.toml:12:8: `models[1].name` is `""`, expected a name of 1 to 256 bytes
            a.toml:13:1: `families[0].name` is missing
            10 problems in 1 file; the gateway would keep its running policy
        "#]],
    );
}

#[test]
fn a_difference_is_told_by_table() {
    let new = compile("a.toml", &format!("version = 1\n{GOOD}")).unwrap();
    let said: Vec<String> = changes(&Policy::default(), &new)
        .iter()
        .map(|change| format!("{}: {} {}\n", change.key, change.old, change.new))
        .collect();
    expect![[r#"
        models: [] [{"name": "Qwen/*", "family": "house", "reasoning": "hidden", "reasoning_field": "both", "thinking": false, "thinking_tokens_max": 256, "budget": "emulated"}, {"name": "*", "reasoning": "field", "reasoning_field": "reasoning_content", "budget": "native"}]
        families: [] [{"name": "house", "tags": {"open": ["<a>"], "reopen": true}}]
    "#]].assert_eq(&said.concat());
}

#[test]
fn the_first_rule_that_fits_holds() {
    let models = compile("a.toml", &format!("version = 1\n{GOOD}"))
        .unwrap()
        .models;
    assert_eq!(models.of("Qwen/x").unwrap().name, "Qwen/*");
    assert_eq!(models.of("x").unwrap().name, "*");
}
