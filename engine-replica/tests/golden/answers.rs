//! Greedy answers against transformers, through the whole way from messages to tokens.

use engine_replica::loader::{self, Checkpoint};
use engine_replica::model::BackendChoice;
use engine_replica::template::RenderInput;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::fixtures;
use crate::session::Session;

#[derive(Deserialize)]
struct Row {
    question: String,
    prompt: Vec<u32>,
    /// Ends with an end token, or at the fixture's length.
    answer: Vec<u32>,
    margin: f32,
}

fn prompt(model: &Checkpoint, question: &str, kwargs: &Map<String, Value>) -> Vec<u32> {
    let messages = [json!({"role": "user", "content": question})];
    let input = RenderInput {
        messages: &messages,
        tools: &[],
        add_generation_prompt: true,
        kwargs,
        now: 0,
    };
    model
        .tokenizer
        .encode_rendered(&model.template.render(&input).unwrap())
        .unwrap()
}

fn greedy(session: &mut Session, prompt: &[u32], count: usize) -> Vec<u32> {
    session.reset();
    let mut logits = session.feed(prompt);
    let mut answer = Vec::new();
    while answer.len() < count {
        // The first of equals, as everywhere.
        let best = logits
            .iter()
            .enumerate()
            .rev()
            .max_by(|a, b| a.1.total_cmp(b.1))
            .unwrap()
            .0 as u32;
        answer.push(best);
        logits = session.feed(&[best]);
    }
    answer
}

#[track_caller]
fn check(
    model: &Checkpoint,
    backend: BackendChoice,
    rows: &[Row],
    kwargs: &Value,
    margin_min: f32,
) {
    let mut session = Session::new(&model.weights, backend);
    let kwargs = kwargs.as_object().unwrap();
    for row in rows {
        assert!(row.margin > margin_min);
        assert_eq!(
            prompt(model, &row.question, kwargs),
            row.prompt,
            "{}",
            row.question
        );
        assert_eq!(
            greedy(&mut session, &row.prompt, row.answer.len()),
            row.answer,
            "{}",
            row.question
        );
    }
}

#[test]
fn abacus_answers_as_in_transformers_in_both_modes_on_both_backends() {
    let model = loader::open(&fixtures::abacus()).unwrap();
    let fixture = fixtures::read("abacus.json");
    let margin_min = fixtures::part(&fixture, "margin_min");
    let thinking: Vec<Row> = fixtures::part(&fixture, "answers_thinking");
    let direct: Vec<Row> = fixtures::part(&fixture, "answers_direct");
    assert_eq!((thinking.len(), direct.len()), (24, 24));
    let (on, off) = (
        json!({"enable_thinking": true}),
        json!({"enable_thinking": false}),
    );
    let cpu = BackendChoice::Cpu { threads: Some(2) };
    check(&model, cpu, &thinking, &on, margin_min);
    check(&model, cpu, &thinking[..2], &json!({}), margin_min);
    check(&model, cpu, &direct, &off, margin_min);
    // The scalar backend takes long for long answers.
    let mut shortest = thinking;
    shortest.sort_by_key(|row| row.answer.len());
    shortest.truncate(5);
    check(&model, BackendChoice::Reference, &shortest, &on, margin_min);
    check(&model, BackendChoice::Reference, &direct, &off, margin_min);
}

#[test]
fn smollm2_answers_as_in_transformers() {
    let Some(path) = fixtures::smollm2() else {
        return;
    };
    let model = loader::open(&path).unwrap();
    let fixture = fixtures::read("smollm2.json");
    let rows: Vec<Row> = fixtures::part(&fixture, "answers");
    assert_eq!(rows.len(), 20);
    let cpu = BackendChoice::Cpu { threads: None };
    check(
        &model,
        cpu,
        &rows,
        &json!({}),
        fixtures::part(&fixture, "margin_min"),
    );
}
