//! Rendered conversations against transformers.

use engine_replica::template::{ChatTemplate, RenderInput, SpecialTokens, TemplateError};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::fixtures;

#[derive(Deserialize)]
struct Row {
    template: String,
    case: String,
    messages: Vec<Value>,
    tools: Vec<Value>,
    kwargs: Map<String, Value>,
    add_generation_prompt: bool,
    text: Option<String>,
    error: Option<String>,
}

/// The messages as clients send them: arguments as a string, content in parts.
fn as_sent(messages: &[Value]) -> Vec<Value> {
    let mut sent = messages.to_vec();
    for message in &mut sent {
        if let Some(text) = message["content"].as_str().map(str::to_owned) {
            message["content"] = serde_json::json!([{"type": "text", "text": text}]);
        }
        for call in message
            .get_mut("tool_calls")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let arguments = call["function"]["arguments"].to_string();
            call["function"]["arguments"] = Value::String(arguments);
        }
    }
    sent
}

#[test]
fn every_conversation_reads_as_transformers_writes_it() {
    let fixture = fixtures::read("templates.json");
    let rows: Vec<Row> = fixtures::part(&fixture, "rows");
    assert_eq!(rows.len(), 4 * 17 * 2);
    let special = SpecialTokens {
        bos: fixtures::part(&fixture, "bos_token"),
        eos: fixtures::part(&fixture, "eos_token"),
        ..SpecialTokens::default()
    };
    for row in rows {
        let source =
            std::fs::read_to_string(fixtures::path("templates").join(&row.template)).unwrap();
        let control = vec!["<|im_start|>".to_owned(), "<|eot_id|>".to_owned()];
        let template = ChatTemplate::new(&source, special.clone(), control).unwrap();
        for messages in [row.messages.clone(), as_sent(&row.messages)] {
            let input = RenderInput {
                messages: &messages,
                tools: &row.tools,
                add_generation_prompt: row.add_generation_prompt,
                kwargs: &row.kwargs,
                now: fixtures::part(&fixture, "now"),
            };
            let place = format!("{} in {}", row.case, row.template);
            match (template.render(&input), &row.text, &row.error) {
                (Ok(rendered), Some(text), _) => assert_eq!(rendered.text(), text, "{place}"),
                (Err(TemplateError::Raised(message)), _, Some(error)) => {
                    assert_eq!(&message, error, "{place}")
                }
                (other, ..) => panic!("{place}: {other:?}"),
            }
        }
    }
}
