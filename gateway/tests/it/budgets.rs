//! Budgets of thinking that the gateway keeps itself: cut at the limit, and continued as one answer.

use chat_wire::thinking::Engine;
use proptest::prelude::*;

use crate::fleet::{Answer, Fleet, chat};
use crate::replica::{Got, STOP, Scripted, Step, chunk, end, event, json, stream, stream_head};

const HEAD: &str =
    r#"{"id":"one","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
const AGAIN: &str =
    r#"{"id":"two","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
const USED: &str = r#"{"id":"two","choices":[],"usage":{"prompt_tokens":30,"completion_tokens":2,"total_tokens":32,"prompt_tokens_details":{"cached_tokens":28}}}"#;

/// A fleet of one replica of this engine, whose model's budget is kept as `budget` says.
fn fleet(
    family: &str,
    budget: &str,
    engine: Option<Engine>,
    script: impl Fn(usize, &Got) -> Vec<Step> + Send + Sync + 'static,
) -> Fleet {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    let rule = format!("name = \"m\"\nfamily = \"{family}\"\nbudget = \"{budget}\"");
    std::fs::write(&file, format!("version = 1\n[[models]]\n{rule}\n")).unwrap();
    Fleet::with(vec![Scripted::reading("a", script)], |config| {
        config.policy = Some(file);
        // An engine with no name is this project's own where it names its process.
        config.replicas[0].engine = engine;
    })
}

fn delta(field: &str, text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!(r#"{{"id":"one","choices":[{{"index":0,"delta":{{"{field}":{text}}}}}]}}"#)
}

/// A stream that thinks on for ever, in chunks of one token.
fn thinks_on(open: &[&str], field: &str) -> Vec<Step> {
    let mut steps = vec![stream_head(), event(HEAD)];
    steps.extend(open.iter().map(|text| event(&delta("content", text))));
    steps.extend((0..200).map(|n| event(&delta(field, &format!("t{n} ")))));
    steps.push(Step::Hang);
    steps
}

fn answers() -> Vec<Step> {
    let so = delta("content", "So.").replace("one", "two");
    stream(&[AGAIN, &so, STOP, USED, "[DONE]"])
}

fn asking(more: &str) -> String {
    chat(&["x"]).replace("\"model\"", &format!("{more}\"model\""))
}

fn data(answer: &Answer) -> Vec<serde_json::Value> {
    let events = answer.body.split("\n\n");
    let data = events.filter_map(|event| event.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}

fn gathered(answer: &Answer, field: &str) -> String {
    let chunks = data(answer);
    let texts = chunks
        .iter()
        .map(|chunk| chunk["choices"][0]["delta"][field].as_str().unwrap_or(""));
    texts.collect()
}

/// The beginning of the answer that the replica was asked to go on behind, and the whole request.
fn continued(fleet: &Fleet) -> (String, serde_json::Value) {
    let body: serde_json::Value = serde_json::from_str(&fleet.replicas[0].last().body).unwrap();
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "assistant");
    (last["content"].as_str().unwrap().to_owned(), body)
}

const CUT: &str = "gateway_thinking_budgets_total{replica=\"a\",result=\"cut\"}";

#[tokio::test(start_paused = true)]
async fn a_thought_is_cut_at_its_budget_and_continued_as_one_answer() {
    let fleet = fleet("qwen3", "emulated", Some(Engine::Vllm), |n, _| match n {
        0 => thinks_on(&["<think>", "\n"], "content"),
        _ => answers(),
    });
    let more =
        r#""thinking_token_budget":3,"max_tokens":200,"stream_options":{"include_usage":true},"#;
    let answer = fleet.ask(&[], &asking(more)).await;
    assert_eq!(answer.header("x-pinion-thinking-budget"), "3");
    assert_eq!(gathered(&answer, "reasoning_content"), "t0 t1 t2 ");
    assert_eq!(gathered(&answer, "content"), "So.");
    assert!(answer.body.ends_with("data: [DONE]\n\n"));
    let chunks = data(&answer);
    for (what, count) in [
        ("\"assistant\"", 1),
        ("\"stop\"", 1),
        ("[DONE]", 1),
        ("\"two\"", 0),
    ] {
        assert_eq!(
            answer.body.matches(what).count(),
            count,
            "{what} in {}",
            answer.body
        );
    }
    assert_eq!(
        chunks.last().unwrap()["usage"],
        serde_json::json!({"prompt_tokens": 27, "completion_tokens": 5, "total_tokens": 32, "completion_tokens_details": {"reasoning_tokens": 3}})
    );
    let (text, body) = continued(&fleet);
    assert_eq!(text, "<think>\nt0 t1 t2 \n</think>\n\n");
    assert_eq!(body["continue_final_message"], true);
    assert_eq!(body["add_generation_prompt"], false);
    assert_eq!(body["max_tokens"], 197);
    assert!(body["thinking_token_budget"].is_null());
    assert_eq!((fleet.replicas[0].count(), fleet.metric(CUT)), (2, 1.0));
    assert_eq!(
        (fleet.outcome("a", "ok"), fleet.open_requests()),
        (1.0, 0.0)
    );
    // The first stream was left, which tells the engine to stop.
    assert_eq!(fleet.replicas[0].log.lock().unwrap().cancelled, 1);
}

#[tokio::test(start_paused = true)]
async fn each_engine_goes_on_in_its_own_words() {
    let check = async |family: &str, engine, field: &'static str, prefix: &str, says: &str| {
        let fleet = fleet(family, "emulated", Some(engine), move |n, _| match n {
            0 => thinks_on(&[], field),
            _ => answers(),
        });
        let answer = fleet
            .ask(&[], &asking(r#""thinking_token_budget":2,"#))
            .await;
        assert_eq!(gathered(&answer, "reasoning_content"), "t0 t1 ", "{family}");
        assert_eq!(gathered(&answer, "content"), "So.");
        assert_eq!(continued(&fleet).0, prefix, "{family}");
        let body = fleet.replicas[0].last().body;
        assert!(body.contains(says), "{says} in {body}");
    };
    let whole = "<think>\nt0 t1 \n</think>\n\n";
    let open = "t0 t1 \n</think>\n\n";
    let on = "\"continue_final_message\":true";
    // The engine's own split is continued as the text that it was made of.
    check("qwen3", Engine::Vllm, "reasoning", whole, on).await;
    check("qwen3.5", Engine::Vllm, "content", whole, on).await;
    // SGLang and llama.cpp put it behind the prompt, which may have the opener already.
    check("deepseek-r1", Engine::Sglang, "content", open, on).await;
    let off = "\"chat_template_kwargs\":{\"enable_thinking\":false}";
    check("qwen3.5", Engine::LlamaCpp, "content", whole, off).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_cut_is_refused_with_the_reason() {
    let check = async |family: &str, engine, more: &str, why: &str| {
        let fleet = fleet(family, "emulated", Some(engine), |_, _| answers());
        let more = format!(r#""thinking_token_budget":2,{more}"#);
        let answer = fleet.ask(&[], &asking(&more)).await;
        let code = "thinking_budget_unsupported";
        assert_eq!((answer.status, &*answer.code()), (400, code), "{more}");
        assert!(answer.body.contains(why), "{why} in {}", answer.body);
        assert_eq!(fleet.replicas[0].count(), 0);
        let refused = "gateway_thinking_budgets_total{replica=\"a\",result=\"refused\"}";
        assert_eq!(fleet.metric(refused), 1.0);
    };
    check("qwen3", Engine::Vllm, "\"n\":2,", "one answer at a time").await;
    check(
        "qwen3",
        Engine::Vllm,
        "\"logprobs\":true,",
        "leave them out",
    )
    .await;
    check("gpt-oss", Engine::Vllm, "", "an opener and a closer").await;
    check("deepseek-r1", Engine::Vllm, "", "drops earlier reasoning").await;
    let tools = r#""tools":[{"type":"function"}],"#;
    check("qwen3", Engine::LlamaCpp, tools, "there are `tools`").await;
    // Without a budget there is nothing to keep.
    let fleet = fleet("qwen3", "emulated", Some(Engine::Vllm), |_, _| answers());
    assert_eq!(fleet.ask(&[], &asking("\"n\":2,")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_nothing_begins_behind_the_closed_thought() {
    // RC-131: 0 is closed at once.
    let fleet = fleet("qwen3", "emulated", Some(Engine::Vllm), |_, _| answers());
    let answer = fleet
        .ask(&[], &asking(r#""thinking_token_budget":0,"#))
        .await;
    assert_eq!(gathered(&answer, "content"), "So.");
    assert_eq!(continued(&fleet).0, "<think>\n\n</think>\n\n");
    assert_eq!(fleet.replicas[0].count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_thought_that_opens_again_is_cut_at_once() {
    // RC-130: the budget is for all blocks together.
    let fleet = fleet("qwen3", "emulated", Some(Engine::Sglang), |n, _| match n {
        0 => thinks_on(&["<think>"], "content"),
        1 => thinks_on(&["<think>"], "content"),
        _ => answers(),
    });
    let answer = fleet
        .ask(&[], &asking(r#""thinking_token_budget":8,"#))
        .await;
    assert_eq!(gathered(&answer, "content"), "So.");
    let thought = "t0 t1 t2 t3 t4 t5 t6 t7 t0 ";
    assert_eq!(gathered(&answer, "reasoning_content"), thought);
    assert!(!answer.body.contains("think>"), "{}", answer.body);
    assert_eq!((fleet.replicas[0].count(), fleet.metric(CUT)), (3, 2.0));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_ignores_its_budget_is_cut_a_little_later() {
    // RC-128; RC-133: closers of earlier answers count for nothing.
    for messages in [
        &["x"][..],
        &["x", "<think></think>b", "y", "a</think>", "z"],
    ] {
        let fleet = fleet("qwen3", "guarded", Some(Engine::Sglang), |n, _| match n {
            0 => thinks_on(&["<think>"], "content"),
            _ => answers(),
        });
        let budget =
            r#""custom_params":{"a":1},"thinking_token_budget":64,"max_tokens":4000,"model""#;
        let body = chat(messages).replace("\"model\"", budget);
        let answer = fleet.ask(&[], &body).await;
        let thought = gathered(&answer, "reasoning_content");
        assert_eq!(thought.split_whitespace().count(), 80);
        assert_eq!(gathered(&answer, "content"), "So.");
        assert_eq!(fleet.metric(CUT), 1.0);
        let (_, body) = continued(&fleet);
        assert_eq!(body["max_tokens"], 3920);
    }
}

#[tokio::test(start_paused = true)]
async fn a_thought_that_ends_within_its_budget_is_left_alone() {
    let fleet = fleet("qwen3", "emulated", Some(Engine::Vllm), |_, _| {
        let parts = ["<think>", "\n", "why", "\n", "</think>", "\n\n", "So", "."];
        let parts: Vec<String> = parts.iter().map(|text| delta("content", text)).collect();
        let mut data: Vec<&str> = parts.iter().map(|part| &**part).collect();
        data.extend([STOP, "[DONE]"]);
        stream(&data)
    });
    let answer = fleet
        .ask(&[], &asking(r#""thinking_token_budget":2,"#))
        .await;
    assert_eq!(gathered(&answer, "reasoning_content"), "why");
    assert_eq!(gathered(&answer, "content"), "So.");
    assert_eq!((fleet.replicas[0].count(), fleet.metric(CUT)), (1, 0.0));
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_go_on_breaks_the_answer() {
    let refuses = |n: usize, _: &Got| match n % 2 {
        0 => thinks_on(&["<think>"], "content"),
        _ => json(400, "{}"),
    };
    let fleet = fleet("qwen3", "emulated", Some(Engine::Vllm), refuses);
    let more = r#""thinking_token_budget":2,"#;
    let answer = fleet.ask(&[], &asking(more)).await;
    assert_eq!(gathered(&answer, "reasoning_content"), "t0 t1 ");
    assert!(answer.body.contains("answer_truncated") && !answer.body.contains("[DONE]"));
    assert!(answer.body.contains("status 400"), "{}", answer.body);
    let whole = asking(more).replace("\"stream\":true,", "");
    let answer = fleet.ask(&[], &whole).await;
    assert_eq!((answer.status, &*answer.code()), (502, "answer_truncated"));
    assert_eq!(fleet.open_requests(), 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_stream_and_a_whole_answer_have_the_same_text_however_they_come(
        tokens in prop::collection::vec(prop::sample::select(vec![
            "<think>", "</think>", "</", "think>", "a", " ", "\n", "é", "\"", "bcd",
        ]), 0..12),
        cuts in prop::collection::vec(0_usize..1200, 0..20),
        budget in 1_u64..6,
        own in any::<bool>(),
    ) {
        let mut said: String = std::iter::once(HEAD.to_owned())
            .chain(tokens.iter().map(|text| delta(if own { "reasoning" } else { "content" }, text)))
            .map(|data| format!("data: {data}\n\n")).collect();
        said.push_str(&format!("data: {STOP}\n\ndata: {USED}\n\ndata: [DONE]\n\n"));
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| *at < said.len() && said.is_char_boundary(*at)).collect();
        cuts.extend([0, said.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        let fleet = fleet("qwen3", "emulated", Some(Engine::Sglang), move |n, got| {
            if got.body.contains("assistant") {
                return answers();
            }
            let parts = cuts.windows(2).map(|cut| chunk(&said[cut[0]..cut[1]]));
            let mut steps = vec![stream_head()];
            // The first request comes in one piece, the second one cut anywhere.
            if n == 0 { steps.push(chunk(&said)) } else { steps.extend(parts) }
            steps.push(end());
            steps
        });
        let body = asking(&format!("\"thinking_token_budget\":{budget},"));
        let whole = body.replace("\"stream\":true,", "");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let (stream, whole) = runtime.block_on(async { (fleet.ask(&[], &body).await, fleet.ask(&[], &whole).await) });
        prop_assert_eq!(whole.header("content-type"), "application/json");
        let whole: serde_json::Value = serde_json::from_str(&whole.body).unwrap();
        let choice = &whole["choices"][0];
        for field in ["reasoning_content", "content"] {
            prop_assert_eq!(gathered(&stream, field), choice["message"][field].as_str().unwrap_or(""), "{}", field);
        }
        prop_assert_eq!(&choice["finish_reason"], "stop");
        prop_assert_eq!(&whole["id"], "one");
        prop_assert_eq!(stream.body.matches("\"stop\"").count(), 1);
        prop_assert!(!stream.body.contains("answer_truncated"));
        prop_assert!(whole["usage"]["completion_tokens_details"]["reasoning_tokens"].is_u64());
    }
}
