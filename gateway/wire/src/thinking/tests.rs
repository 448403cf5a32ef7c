use bytes::Bytes;

use super::*;
use crate::families::{Families, History};
use crate::scan;

fn edited(body: &str, edit: impl FnOnce(&mut Edits, &ChatScan)) -> String {
    let body = Bytes::from(body.to_owned());
    let scan = scan::chat(&body, &[]).unwrap();
    let mut edits = Edits::new();
    edit(&mut edits, &scan);
    let new = edits.apply(&body).unwrap();
    scan::chat(&new, &[]).unwrap();
    String::from_utf8(new.to_vec()).unwrap()
}

fn thinking(body: &str) -> ThinkingScan {
    scan::chat(body.as_bytes(), &[]).unwrap().thinking
}

#[test]
fn a_budget_is_a_whole_number_or_refused() {
    // RC-131
    for (written, expect) in [
        ("-1", Some(None)),
        ("0", Some(Some(0))),
        ("1", Some(Some(1))),
        ("-5", None),
        ("true", None),
        ("3.5", None),
        ("\"64\"", None),
        ("null", Some(None)),
    ] {
        for field in ["thinking_token_budget", "thinking_budget_tokens"] {
            let said = asked(&thinking(&format!("{{\"{field}\":{written}}}")));
            assert_eq!(said.clone().ok(), expect, "{written}");
            if let Err(error) = said {
                assert!(error.to_string().contains(field) && error.to_string().contains(written));
            }
        }
    }
    let nested =
        r#"{"thinking":{"type":"enabled","budget_tokens":7},"reasoning":{"max_tokens":7}}"#;
    assert_eq!(asked(&thinking(nested)), Ok(Some(7)));
    let differ = r#"{"thinking":{"budget_tokens":7},"thinking_token_budget":8}"#;
    assert_eq!(
        asked(&thinking(differ)).unwrap_err().field,
        "thinking_token_budget"
    );
}

#[test]
fn a_budget_leaves_room_for_an_answer() {
    // RC-135
    for (wanted, most, max_tokens, expect) in [
        (None, None, Some(10), None),
        (Some(512), None, Some(512), Some(448)),
        (Some(512), None, None, Some(512)),
        (Some(512), Some(100), Some(512), Some(100)),
        (None, Some(100), Some(20), Some(10)),
        (Some(5), None, Some(1), Some(0)),
        (Some(5), None, Some(0), Some(0)),
        (Some(0), Some(9), None, Some(0)),
    ] {
        assert_eq!(budget(wanted, most, max_tokens), expect);
    }
}

#[test]
fn a_budget_stands_where_its_engine_reads_it() {
    let check = |body: &str, engine, expect: &str| {
        assert_eq!(
            edited(body, |edits, scan| {
                edit_budget(edits, scan, engine, 9);
            }),
            expect
        );
    };
    check("{}", Engine::Vllm, r#"{"thinking_token_budget":9}"#);
    check(
        r#"{"n":1}"#,
        Engine::LlamaCpp,
        r#"{"n":1,"thinking_budget_tokens":9}"#,
    );
    let own = r#"{"thinking_token_budget": 9,"n":1}"#;
    check(own, Engine::Pinion, own);
    check(
        own,
        Engine::LlamaCpp,
        r#"{"thinking_budget_tokens":9,"n":1}"#,
    );
    check(
        &own.replace('9', "12"),
        Engine::Vllm,
        r#"{"thinking_token_budget":9,"n":1}"#,
    );
    check(
        "{}",
        Engine::Sglang,
        r#"{"custom_params":{"thinking_budget":9}}"#,
    );
    check(
        r#"{"custom_params":{"a":1}}"#,
        Engine::Sglang,
        r#"{"custom_params":{"thinking_budget":9,"a":1}}"#,
    );
    check(
        r#"{"reasoning":{"max_tokens":12}}"#,
        Engine::Vllm,
        r#"{"reasoning":{"max_tokens":12},"thinking_token_budget":9}"#,
    );
}

#[test]
fn a_wish_is_put_into_the_templates_own_switch() {
    let families = Families::built_in().unwrap();
    let check = |family: &str, body: &str, wish, expect: &str| {
        let switch = &families.named(family).unwrap().switch;
        assert_eq!(switch.wish(&thinking(body)), wish, "{body}");
        let new = edited(body, |edits, scan| {
            if let Some((thinking, false)) = wish {
                edit_switch(edits, scan, switch, thinking);
            }
        });
        assert_eq!(new, expect);
    };
    let no = Some((false, false));
    check(
        "glm-4.5",
        r#"{"thinking":{"type":"disabled"}}"#,
        no,
        r#"{"thinking":{"type":"disabled"},"chat_template_kwargs":{"enable_thinking":false}}"#,
    );
    check(
        "deepseek-v3.1",
        r#"{"reasoning":{"enabled":true},"chat_template_kwargs":null}"#,
        Some((true, false)),
        r#"{"reasoning":{"enabled":true},"chat_template_kwargs":{"thinking":true}}"#,
    );
    check(
        "minimax-m3",
        r#"{"reasoning_effort":"none","chat_template_kwargs":{"a":"b"}}"#,
        no,
        r#"{"reasoning_effort":"none","chat_template_kwargs":{"thinking_mode":"disabled","a":"b"}}"#,
    );
    // An explicit switch counts more than an effort.
    let both = r#"{"reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":true}}"#;
    check("qwen3", both, Some((true, true)), both);
    let odd = r#"{"enable_thinking":false,"chat_template_kwargs":[]}"#;
    check("qwen3", odd, no, odd);
    check(
        "deepseek-r1",
        r#"{"enable_thinking":false}"#,
        no,
        r#"{"enable_thinking":false}"#,
    );
    check("qwen3", "{}", None, "{}");
}

#[test]
fn earlier_reasoning_goes_as_the_family_says() {
    let body = r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","reasoning_content":"r1","reasoning":"r1","content":"b"},{"role":"user","content":"c"},{ "reasoning":"r2" , "role":"assistant","tool_calls":[1],"reasoning_content":"r2" },{"role":"tool","content":"d","reasoning":"x"},{"role":"assistant","reasoning":"r3"}]}"#;
    let check = |history, gone: &[&str]| {
        let mut expect = body.to_owned();
        for part in gone {
            assert!(expect.contains(part), "{part}");
            expect = expect.replacen(part, "", 1);
        }
        let new = edited(body, |edits, scan| {
            edit_history(edits, body.as_bytes(), scan, history);
        });
        assert_eq!(new, expect);
    };
    let first = [r#","reasoning_content":"r1""#, r#","reasoning":"r1""#];
    check(History::Keep, &[]);
    check(History::ToolLoop, &first);
    check(
        History::Strip,
        &[
            first[0],
            first[1],
            r#""reasoning":"r2" , "#,
            r#","reasoning_content":"r2""#,
            r#","reasoning":"r3""#,
        ],
    );
    let alone = r#"{"messages":[{"role":"assistant","reasoning":"r","reasoning_content":"r"}]}"#;
    let new = edited(alone, |edits, scan| {
        edit_history(edits, alone.as_bytes(), scan, History::Strip);
    });
    assert_eq!(new, r#"{"messages":[{"role":"assistant"}]}"#);
    let first = r#"{"messages":[{"reasoning":"r","reasoning_content":"r","role":"assistant"}]}"#;
    let new = edited(first, |edits, scan| {
        edit_history(edits, first.as_bytes(), scan, History::Strip);
    });
    assert_eq!(new, r#"{"messages":[{"role":"assistant"}]}"#);
}

#[test]
fn a_lane_writes_over_what_the_client_says() {
    let families = Families::built_in().unwrap();
    let check = |family: &str, body: &str, thinking, expect: &str| {
        let switch = &families.named(family).unwrap().switch;
        let new = edited(body, |edits, scan| {
            force_switch(edits, scan, switch, thinking);
        });
        assert_eq!(new, expect);
    };
    let off = r#"{"chat_template_kwargs":{"enable_thinking":false}}"#;
    check("qwen3", r#"{}"#, false, off);
    check("qwen3", off, false, off);
    let on = r#"{"chat_template_kwargs":{"a":1,"enable_thinking" : true}}"#;
    check("qwen3", &on.replace("true", "false"), true, on);
    // RC-156: the member of another template stays, and this one's own is added.
    check(
        "glm-4.7",
        r#"{"chat_template_kwargs":{"thinking":false}}"#,
        false,
        r#"{"chat_template_kwargs":{"enable_thinking":false,"thinking":false}}"#,
    );
    check(
        "minimax-m3",
        r#"{"chat_template_kwargs":{"thinking_mode":"disabled"}}"#,
        true,
        r#"{"chat_template_kwargs":{"thinking_mode":"enabled"}}"#,
    );
    check("deepseek-r1", "{}", false, "{}");
    // RC-158: each family's own words for an effort.
    for (family, efforts) in [
        (
            "gpt-oss",
            ["low", "low", "low", "medium", "high", "high", "high"],
        ),
        (
            "deepseek-v4",
            ["none", "low", "low", "high", "high", "high", "max"],
        ),
    ] {
        let family = families.named(family).unwrap();
        let asked = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
        assert_eq!(asked.map(|effort| family.effort(effort)), efforts);
    }
    let effort = |body: &str, expect: &str| {
        let new = edited(body, |edits, scan| {
            edit_effort(edits, scan, "low");
        });
        assert_eq!(new, expect);
    };
    effort(r#"{"n":1}"#, r#"{"n":1,"reasoning_effort":"low"}"#);
    effort(
        r#"{"reasoning_effort": null}"#,
        r#"{"reasoning_effort": "low"}"#,
    );
    effort(
        r#"{"reasoning_effort":"max","chat_template_kwargs":{"reasoning_effort":"high"}}"#,
        r#"{"reasoning_effort":"low","chat_template_kwargs":{"reasoning_effort":"low"}}"#,
    );
    let most = |body: &str, expect: &str| {
        assert_eq!(
            edited(body, |edits, scan| edit_max_tokens(edits, scan, 9)),
            expect
        );
    };
    most(r#"{"n":1}"#, r#"{"n":1,"max_tokens":9}"#);
    most(r#"{"max_tokens": 10}"#, r#"{"max_tokens": 9}"#);
    most(
        r#"{"max_tokens":10,"max_completion_tokens":null}"#,
        r#"{"max_tokens":9,"max_completion_tokens":9}"#,
    );
}

#[test]
fn a_word_in_the_text_switches_thinking() {
    for (text, wish) in [
        ("", None),
        ("why /think", Some(true)),
        ("/no_think\nwhy", Some(false)),
        ("/think a /nothink", Some(false)),
        ("a/think /thinking '/no_think'", None),
    ] {
        assert_eq!(in_text(text), wish, "{text}");
    }
}

#[test]
fn a_cut_answer_goes_on_within_what_its_lane_left() {
    let families = Families::built_in().unwrap();
    let family = families.named("qwen3").unwrap();
    let new = edited(
        r#"{"messages":[{"role":"user"}],"max_tokens":90,"max_completion_tokens":null}"#,
        |edits, scan| {
            edit_max_tokens(edits, scan, 40);
            let lowered = ChatScan {
                max_tokens: Some(40),
                ..scan.clone()
            };
            let continued = Continued::of(family, Some(Engine::Sglang), &lowered).unwrap();
            continued.edit(edits, &lowered, "hm", 16);
        },
    );
    let scan = scan::chat(new.as_bytes(), &[]).unwrap();
    assert_eq!(scan.max_tokens, Some(24));
    assert_eq!(new.matches(":24").count(), 2, "{new}");
}
