use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::*;
use crate::families::Families;
use crate::split::{Split, Start, split};

mod rows;

fn plan(family: &str) -> Plan {
    let families = Families::built_in().unwrap();
    Plan {
        grammar: families.named(family).unwrap().grammar.clone(),
        thinking: None,
        engine_splits: false,
        shown: Shown::Field,
        field: FieldName::ReasoningContent,
    }
}

/// What a client reads of a stream with these data.
fn stream(plan: Plan, events: &[String]) -> (Vec<String>, Reshaper) {
    let mut reshaper = Reshaper::new(plan);
    let mut places = Places::default();
    let mut out = Vec::new();
    for event in events {
        let data = Bytes::from(event.clone());
        let mut seen = chunk::scan_placed(&data, &mut places).unwrap();
        match reshaper.event(&data, &mut seen, &places).change {
            Change::Same => out.push(event.clone()),
            Change::Nothing => {}
            Change::Spliced => {
                let mut new = BytesMut::new();
                reshaper.write(&data, &mut new);
                out.push(String::from_utf8(new.to_vec()).unwrap());
            }
        }
    }
    (out, reshaper)
}

fn delta(index: u64, content: &str) -> String {
    let content = serde_json::to_string(content).unwrap();
    format!(
        r#"{{"id":"c","choices":[{{"index":{index},"delta":{{"content":{content}}},"finish_reason":null}}]}}"#
    )
}

fn finish(index: u64) -> String {
    format!(r#"{{"id":"c","choices":[{{"index":{index},"delta":{{}},"finish_reason":"stop"}}]}}"#)
}

/// Reasoning and content that a client gathers of one choice.
fn gathered(events: &[String], index: u64, name: &str) -> Split {
    let (mut reasoning, mut content) = (String::new(), String::new());
    for event in events {
        let event: serde_json::Value = serde_json::from_str(event).unwrap();
        for choice in event["choices"].as_array().unwrap() {
            if choice["index"].as_u64() == Some(index) {
                reasoning.push_str(choice["delta"][name].as_str().unwrap_or(""));
                content.push_str(choice["delta"]["content"].as_str().unwrap_or(""));
            }
        }
    }
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    Split {
        reasoning: some(reasoning),
        content: some(content),
    }
}

/// The two fields of a whole answer with this text.
fn whole(plan: Plan, text: &str) -> Split {
    let content = serde_json::to_string(text).unwrap();
    let body = format!(
        r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":{content}}},"finish_reason":"stop"}}]}}"#
    );
    let (new, _) = Reshaper::new(plan).answer(&body.into()).unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&new).unwrap();
    let message = &answer["choices"][0]["message"];
    let field = |name: &str| message[name].as_str().map(str::to_owned);
    Split {
        reasoning: field("reasoning_content"),
        content: field("content"),
    }
}

/// Texts rich in pieces of markers, with letters of several bytes, quotes and escapes.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "<think>",
        "</think>",
        "<th",
        "ink>",
        "</",
        "think",
        ">",
        "\n",
        " ",
        "a",
        "é",
        "漢",
        "\"",
        "\\",
        "<tool_call>\n{",
        "<tool_call>",
        "[THINK]",
        "[/THINK]",
        "◁think▷",
        "◁/think▷",
        "<answer>\n",
        "</answer>",
        "<|channel|>analysis<|message|>",
        "<|end|>",
        "<|start|>assistant",
        "<|channel|>final<|message|>",
        "<seed:think>",
        "</seed:think>",
        "<|START_THINKING|>",
        "<|END_THINKING|>",
        "Here is my response:",
        "Here is my ",
        "<|channel>thought\n",
        "<channel|>",
    ]);
    prop::collection::vec(pieces, 0..14).prop_map(|pieces| pieces.concat())
}

fn cut(text: &str, at: &[usize]) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut parts = vec![String::new()];
    for (place, letter) in letters.iter().enumerate() {
        if at.contains(&place) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(*letter);
        }
    }
    parts
}

proptest! {
    #[test]
    fn stream_and_whole_answer_are_split_alike_for_every_family_and_cut(
        text in text(),
        cuts in prop::collection::vec(0_usize..40, 0..12),
        thinking in prop::option::of(any::<bool>()),
    ) {
        let families = Families::built_in().unwrap();
        for family in families.rows() {
            let plan = Plan { thinking, ..plan(&family.name) };
            let expect = split(&family.grammar, Start { prompt_tail: None, thinking }, [&*text]);
            for cuts in [cuts.clone(), (0..text.len()).collect()] {
                let mut events: Vec<String> = cut(&text, &cuts).iter().map(|part| delta(0, part)).collect();
                events.push(finish(0));
                let (events, reshaper) = stream(plan.clone(), &events);
                let got = gathered(&events, 0, "reasoning_content");
                if matches!(family.grammar, Grammar::None) {
                    prop_assert_eq!(got.content.unwrap_or_default(), text.clone());
                } else {
                    prop_assert_eq!(&got, &expect, "{}", family.name);
                    prop_assert_eq!(&whole(plan.clone(), &text), &expect, "{}", family.name);
                }
                prop_assert!(!reshaper.has_unread());
                prop_assert!(events.iter().all(|event| chunk::scan(event.as_bytes()).is_ok()));
            }
        }
    }

    #[test]
    fn hidden_reasoning_reaches_nobody(
        secret in "[QZJ]{4}",
        cuts in prop::collection::vec(0_usize..60, 0..12),
        summary in any::<bool>(),
    ) {
        let text = format!("<think>a {secret} b</think>\n\nThe answer.");
        let shown = if summary { Shown::Summary } else { Shown::Hidden };
        let plan = Plan { shown, field: FieldName::Both, ..plan("qwen3") };
        let mut events: Vec<String> = cut(&text, &cuts).iter().map(|part| {
            let logprobs = serde_json::to_string(part).unwrap();
            delta(0, part).replace("\"finish", &format!("\"logprobs\":{{\"content\":[{{\"token\":{logprobs}}}]}},\"finish"))
        }).collect();
        events.push(finish(0));
        let (events, _) = stream(plan, &events);
        let got = gathered(&events, 0, "content");
        prop_assert_eq!(got.content.as_deref(), Some("The answer."));
        let said = events.concat();
        for letter in secret.chars() {
            prop_assert!(!said.contains(letter), "{said}");
        }
        prop_assert_eq!(said.contains("8 characters of reasoning"), summary, "{}", said);
    }
}
