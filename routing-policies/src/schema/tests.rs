use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::problem::report;

/// What is said about a file, or the policy that it makes.
#[track_caller]
fn check(text: &str, expect: &Expect) {
    let said = match compile("acme.toml", text) {
        Ok(policy) => format!("{policy:?}\n"),
        Err(problems) => report(&problems),
    };
    expect.assert_eq(&said);
}

#[test]
fn the_default_file_says_what_the_default_policy_is() {
    assert_eq!(
        compile("default.toml", DEFAULT_POLICY),
        Ok(Policy::default())
    );
    // It names every key, so changing any value in it changes the policy.
    let changed = DEFAULT_POLICY
        .replace("agents = true", "agents = false")
        .replace("infer = true", "infer = false")
        .replace("= 3600", "= 60")
        .replace("= 1000000\n", "= 10\n")
        .replace("\"x-session-id\",", "")
        .replace("\"prompt_cache_key\", ", "")
        .replace("block_bytes = 2048", "block_bytes = 512")
        .replace("cache_tokens = 262144", "cache_tokens = 0x4000")
        .replace("canonical_tools = false", "canonical_tools = true")
        .replace("sort_properties = false", "sort_properties = true")
        .replace("effort_in_head = []", "effort_in_head = [\"prod\"]")
        .replace("crowding = 2.0", "crowding = 0.5")
        .replace("in_flight_weight = 0.1", "in_flight_weight = 1")
        .replace("common_share = 0.2", "common_share = 0.025")
        .replace("stay = 1.0", "stay = 1.5")
        .replace("in_flight_per_session = 0", "in_flight_per_session = 4")
        .replace("prompt_bytes_max = 0", "prompt_bytes_max = 8000")
        .replace("margin = 0.1", "margin = 0.25");
    let policy = compile("changed.toml", &changed).unwrap();
    let default = Policy::default();
    assert!(!policy.session.agents && !policy.session.infer);
    assert_eq!(
        (policy.session.pin_ttl_seconds, policy.session.pins_max),
        (60, 10)
    );
    assert_eq!(policy.session.headers, default.session.headers[1..]);
    assert_eq!(policy.session.body, default.session.body[1..]);
    let prefix = PrefixPolicy {
        block_bytes: 512,
        cache_tokens: 16_384,
        canonical_tools: true,
        sort_properties: true,
        effort_in_head: vec!["prod".to_owned()],
    };
    assert_eq!(policy.prefix, prefix);
    let settings = Settings {
        crowding: 0.5,
        in_flight: 1.0,
        common_share: 0.025,
        stay: 1.5,
        leave_s_min: 0.25,
    };
    assert_eq!(policy.placement.settings, settings);
    let limits = LimitsPolicy {
        in_flight_per_session: 4,
        prompt_bytes_max: 8_000,
    };
    assert_eq!(policy.limits, limits);
    assert_eq!(policy.difficulty, DifficultyPolicy { margin: 0.25 });
}

#[test]
fn a_setting_that_can_do_nothing_is_refused() {
    check(
        "version = 1\n[prefix]\nsort_properties = true\neffort_in_head = [\"\"]\n",
        &expect![[r#"
            acme.toml:3:19: `prefix.sort_properties` does nothing without `canonical_tools`; expected `canonical_tools = true` beside it, or `false`
            acme.toml:4:19: `prefix.effort_in_head[0]` is `""`, expected a model's name of 1 to 256 bytes
            2 problems in 1 file; the gateway would keep its running policy
        "#]],
    );
}

#[test]
fn limits_are_checked_and_one_that_can_count_nothing_is_refused() {
    check(
        "version = 1\n[limits]\nin_flight_per_session = 10001\nprompt_bytes_max = -1\nper_session = 2\n",
        &expect![[r#"
            acme.toml:3:25: `limits.in_flight_per_session` is `10001`, expected a whole number of requests from 0 to 10000
            acme.toml:4:20: `limits.prompt_bytes_max` is `-1`, expected a whole number of bytes from 0 to 1073741824
            acme.toml:5:1: unknown key `limits.per_session`; expected one of `in_flight_per_session`, `prompt_bytes_max`
            3 problems in 1 file; the gateway would keep its running policy
        "#]],
    );
    let nameless = "version = 1\n[session]\nheaders = []\nagents = false\nbody = []\n[limits]\nin_flight_per_session = ";
    check(
        &format!("{nameless}2\n"),
        &expect![[r#"
        acme.toml:7:25: `limits.in_flight_per_session` counts sessions that something names, but `session.headers` and `session.body` are empty and `session.agents` is `false`; expected one of them to name sessions, or `0`
        1 problem in 1 file; the gateway would keep its running policy
    "#]],
    );
    assert!(compile("a.toml", &format!("{nameless}0\n")).is_ok());
}

#[test]
fn the_json_schema_is_current() {
    expect_test::expect_file!["../../policies/policy.schema.json"].assert_eq(&json_schema());
}

/// The policy file as JSON, as an editor's checker sees it.
fn as_json(text: &str) -> serde_json::Value {
    let table: toml::Table = text.parse().unwrap();
    serde_json::to_value(table).unwrap()
}

#[test]
fn the_json_schema_names_every_key_with_its_default() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap();
    let default = as_json(DEFAULT_POLICY);
    let sections = schema["properties"].as_object().unwrap();
    let tables = sections
        .values()
        .filter(|table| table["type"] == "array")
        .count();
    assert_eq!(sections.len() - tables, default.as_object().unwrap().len());
    for (name, section) in sections
        .iter()
        .filter(|(_, section)| section["type"] == "object")
    {
        let keys = section["properties"].as_object().unwrap();
        let defaults: serde_json::Map<String, serde_json::Value> = keys
            .iter()
            .map(|(key, schema)| (key.clone(), schema["default"].clone()))
            .collect();
        assert_eq!(default[name].as_object(), Some(&defaults), "{name}");
    }
}

#[test]
fn changes_name_the_keys_that_differ() {
    let old = Policy::default();
    assert_eq!(changes(&old, &old), []);
    let new = "version = 1\n[session]\nagents = false\n[placement]\nstay = 2\n";
    let changed: Vec<String> = changes(&old, &compile("new.toml", new).unwrap())
        .iter()
        .map(|change| format!("{} {} {}", change.key, change.old, change.new))
        .collect();
    assert_eq!(
        changed,
        ["session.agents true false", "placement.stay 1.0 2.0"]
    );
}

#[test]
fn a_fingerprint_is_the_texts_own() {
    assert_eq!(fingerprint("version = 1"), fingerprint("version = 1"));
    assert_ne!(fingerprint("version = 1"), fingerprint("version = 1\n"));
}

#[test]
fn a_file_that_says_only_its_version_is_the_default() {
    assert_eq!(compile("a.toml", "version = 1"), Ok(Policy::default()));
    let empty = "version = 1\n[session]\nheaders = []\nbody = []\n[placement]\n";
    let policy = compile("a.toml", empty).unwrap();
    assert!(policy.session.headers.is_empty() && policy.session.body.is_empty());
}

#[test]
fn all_problems_are_said_at_once_in_the_order_of_the_text() {
    check(
        r#"
[session]
heders = ["x-session-id"]
headers = ["X-Session-ID", "Authorization", "x-request-id", "bad name", "x-session-id", 7]
body = ["a..b", "user", "user"]
agents = "yes"
infer = 1
pin_ttl_seconds = 0
pins_max = 1.5

[placement]
crowding = 100.1
stay = -1
common_share = 0
in_flight = 0.1

[prefix]
block_bytes = 100
cache_tokens = 1e6

[zebra]
"#,
        &expect![[r#"
            acme.toml:1:1: `version` is missing, expected `version = 1`
            acme.toml:3:1: unknown key `session.heders`; did you mean `headers`?
            acme.toml:4:28: `session.headers[1]` is `"Authorization"`, expected a header that stays the same through a session and is the session's alone (no request or trace id, credential, cookie or client address)
            acme.toml:4:45: `session.headers[2]` is `"x-request-id"`, expected a header that stays the same through a session and is the session's alone (no request or trace id, credential, cookie or client address)
            acme.toml:4:61: `session.headers[3]` is `"bad name"`, expected a header name (letters, digits and `-`)
            acme.toml:4:73: `session.headers[4]` is `"x-session-id"`, expected each name once
            acme.toml:4:89: `session.headers[5]` is `7`, expected a string
            acme.toml:5:9: `session.body[0]` is `"a..b"`, expected 1 to 8 field names joined by dots
            acme.toml:5:25: `session.body[2]` is `"user"`, expected each name once
            acme.toml:6:10: `session.agents` is `"yes"`, expected `true` or `false`
            acme.toml:7:9: `session.infer` is `1`, expected `true` or `false`
            acme.toml:8:19: `session.pin_ttl_seconds` is `0`, expected a whole number of seconds from 1 to 31536000
            acme.toml:9:12: `session.pins_max` is `1.5`, expected a whole number of pins from 1 to 100000000
            acme.toml:12:12: `placement.crowding` is `100.1`, expected a number from 0.0 to 100.0 with at most three decimals
            acme.toml:13:8: `placement.stay` is `-1`, expected a number from 0.0 to 100.0 with at most three decimals
            acme.toml:14:16: `placement.common_share` is `0`, expected a number from 0.001 to 1.0 with at most three decimals
            acme.toml:15:1: unknown key `placement.in_flight`; expected one of `crowding`, `in_flight_weight`, `common_share`, `stay`
            acme.toml:18:15: `prefix.block_bytes` is `100`, expected a whole number of bytes from 256 to 4096
            acme.toml:19:16: `prefix.cache_tokens` is `1e6`, expected a whole number of tokens from 1024 to 1000000000
            acme.toml:21:2: unknown key `zebra`; expected one of `version`, `session`, `prefix`, `placement`, `limits`, `difficulty`, `pools`, `lanes`, `rules`, `models`, `families`
            20 problems in 1 file; the gateway would keep its running policy
        "#]],
    );
}

#[test]
fn a_wrong_section_or_version_is_said() {
    check(
        "version = 2\nsession = 1\nplacement = []\n",
        &expect![[r#"
        acme.toml:1:11: `version` is `2`, expected `1`
        acme.toml:2:11: `session` is `1`, expected a section `[session]`
        acme.toml:3:13: `placement` is `[]`, expected a section `[placement]`
        3 problems in 1 file; the gateway would keep its running policy
    "#]],
    );
    check(
        "version = \"1\"\n[placement]\ncrowding = 1.2345\n",
        &expect![[r#"
            acme.toml:1:11: `version` is `"1"`, expected `1`
            acme.toml:3:12: `placement.crowding` is `1.2345`, expected a number from 0.0 to 100.0 with at most three decimals
            2 problems in 1 file; the gateway would keep its running policy
        "#]],
    );
    check(
        "version = 0x1\n[placement]\ncrowding = inf\n",
        &expect![[r#"
            acme.toml:1:11: `version` is `0x1`, expected `1`
            acme.toml:3:12: `placement.crowding` is `inf`, expected a number from 0.0 to 100.0 with at most three decimals
            2 problems in 1 file; the gateway would keep its running policy
        "#]],
    );
}

#[test]
fn broken_toml_is_said_beside_other_problems() {
    check(
        "version = 1\n[session\nagents = true\n[placement]\ncrowding = \n",
        &expect![[r#"
            acme.toml:2:9: not TOML: unclosed table, expected `]`
            acme.toml:5:12: not TOML: string values must be quoted, expected literal string
            2 problems in 1 file; the gateway would keep its running policy
        "#]],
    );
    check(
        "version = 1\nversion = 1\n[placement]\ncrowdin = 2\n",
        &expect![[r#"
            acme.toml:2:1: not TOML: duplicate key
            acme.toml:4:1: unknown key `placement.crowdin`; did you mean `crowding`?
            2 problems in 1 file; the gateway would keep its running policy
        "#]],
    );
}

#[test]
fn a_long_value_is_shortened_and_a_long_list_refused() {
    let long = "x".repeat(200);
    check(
        &format!("version = 1\n[placement]\ncrowding = \"{long}\"\n"),
        &expect![[r#"
            acme.toml:3:12: `placement.crowding` is `"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`, expected a number from 0.0 to 100.0 with at most three decimals
            1 problem in 1 file; the gateway would keep its running policy
        "#]],
    );
    let names: Vec<String> = (0..33).map(|index| format!("\"h{index}\"")).collect();
    check(
        &format!("version = 1\n[session]\nheaders = [{}]\n", names.join(",")),
        &expect![[r#"
            acme.toml:3:11: `session.headers` has 33 names, expected at most 32
            1 problem in 1 file; the gateway would keep its running policy
        "#]],
    );
}

#[test]
fn the_readmes_policies_compile() {
    let readme = include_str!("../../README.md");
    let blocks: Vec<&str> = readme
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        assert!(compile("README.md", block).is_ok(), "{block}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_policy_or_has_problems(text in r#"(version|session|headers|crowding|placement|=|\[|\]|"|a|1|\.|,|é|\n| ){0,24}"#) {
        if let Err(problems) = compile("a.toml", &text) {
            prop_assert!(!problems.is_empty());
            let lines = text.lines().count() as u32 + 1;
            prop_assert!(problems.iter().all(|p| (1..=lines).contains(&p.line) && p.column >= 1));
        }
    }
}
