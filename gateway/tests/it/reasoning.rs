//! Reasoning: split from the answer, shown as the policy says, and never anywhere else.

use chat_wire::thinking::Engine;
use gateway::config::ReplicaConfig;
use proptest::prelude::*;

use crate::fleet::{Answer, Fleet, chat};
use crate::replica::{STOP, Scripted, Step, USAGE, chunk, end, json, stream, stream_head};

/// A fleet of one replica, with this policy behind its version.
fn fleet(policy: &str, script: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static) -> Fleet {
    fleet_with(policy, |_| {}, script)
}

fn fleet_with(
    policy: &str,
    change: impl FnOnce(&mut ReplicaConfig),
    script: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static,
) -> Fleet {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, format!("version = 1\n{policy}")).unwrap();
    Fleet::with(vec![Scripted::new("a", script)], |config| {
        config.policy = Some(file);
        change(&mut config.replicas[0]);
    })
}

fn model(family: &str, more: &str) -> String {
    format!("[[models]]\nname = \"m\"\nfamily = \"{family}\"\n{more}\n")
}

fn delta(content: &str) -> String {
    let content = serde_json::to_string(content).unwrap();
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":{content}}}}}]}}"#)
}

fn answer_of(content: &str) -> String {
    let content = serde_json::to_string(content).unwrap();
    format!(
        r#"{{"id":"c","choices":[{{"index":0,"message":{{"role":"assistant","content":{content}}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":3,"completion_tokens":10,"total_tokens":13}}}}"#
    )
}

fn sse(data: &[&str]) -> String {
    data.iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect()
}

/// What a client gathers of a stream: a field of all deltas.
fn gathered(answer: &Answer, field: &str) -> String {
    let events = answer.body.split("\n\n");
    let data = events.filter_map(|event| event.strip_prefix("data: "));
    let chunks = data.filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok());
    chunks
        .map(|chunk| {
            chunk["choices"][0]["delta"][field]
                .as_str()
                .unwrap_or("")
                .to_owned()
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_split_into_its_two_fields() {
    let fleet = fleet(&model("qwen3", ""), |_| {
        let parts = ["<th", "ink>\nwhy ", "</", "think>\n\n", "So."].map(delta);
        let mut data: Vec<&str> = parts.iter().map(|part| &**part).collect();
        data.extend([STOP, USAGE, "[DONE]"]);
        stream(&data)
    });
    let answer = fleet.ask(&[], &chat(&["x"])).await;
    assert_eq!(
        answer.body,
        sse(&[
            r#"{"choices":[{"index":0,"delta":{"reasoning_content":"why "}}]}"#,
            &delta("So."),
            STOP,
            "[DONE]"
        ])
    );
    let text = fleet.known.metrics.text();
    for line in [
        "gateway_reasoning_splits_total{by=\"gateway\",replica=\"a\"} 1",
        "gateway_request_reasoning_tokens_sum{replica=\"a\"} 1",
        "gateway_reasoning_tokens_total{lane=\"\",replica=\"a\"} 1",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_is_split_and_tells_its_length() {
    let fleet = fleet(&model("deepseek-r1", "reasoning_field = \"both\""), |_| {
        json(200, &answer_of("why</think>\n\nSo."))
    });
    let answer = fleet
        .ask(
            &[],
            r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#,
        )
        .await;
    assert_eq!(
        answer.body,
        r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"why","reasoning":"why","content":"So."},"finish_reason":"stop"}],"usage":{"completion_tokens_details":{"reasoning_tokens":5},"prompt_tokens":3,"completion_tokens":10,"total_tokens":13}}"#
    );
    assert_eq!(fleet.outcome("a", "ok"), 1.0);
    assert_eq!(fleet.open_requests(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_replicas_own_split_is_renamed_and_remembered() {
    let fleet = fleet(&model("deepseek-r1", ""), |n| {
        let thought = r#"{"choices":[{"index":0,"delta":{"reasoning":"why"}}]}"#;
        let so = delta("So.");
        match n {
            0 => stream(&[thought, &so, STOP, "[DONE]"]),
            // The same replica answers without a thought: that is no reasoning.
            _ => stream(&[&so, STOP, "[DONE]"]),
        }
    });
    let answer = fleet.ask(&[], &chat(&["x"])).await;
    let renamed = r#"{"choices":[{"index":0,"delta":{"reasoning_content":"why"}}]}"#;
    assert_eq!(answer.body, sse(&[renamed, &delta("So."), STOP, "[DONE]"]));
    let answer = fleet.ask(&[], &chat(&["x"])).await;
    assert_eq!(answer.body, sse(&[&delta("So."), STOP, "[DONE]"]));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_model_passes_unchanged_and_is_counted() {
    let text = "<think>a</think>b";
    let fleet = fleet("", move |_| stream(&[&delta(text), STOP, "[DONE]"]));
    let answer = fleet.ask(&[], &chat(&["x"])).await;
    assert_eq!(answer.body, sse(&[&delta(text), STOP, "[DONE]"]));
    let unknown = "gateway_reasoning_splits_total{by=\"unknown_family\",replica=\"a\"}";
    assert_eq!(fleet.metric(unknown), 1.0);
    // Its name is all that is needed to know it.
    let named = chat(&["x"]).replace("\"m\"", "\"Qwen/Qwen3-8B\"");
    let answer = fleet.ask(&[], &named).await;
    assert_eq!(gathered(&answer, "reasoning_content"), "a");
    assert_eq!(gathered(&answer, "content"), "b");
    // A request without a name means the only model that there is.
    fleet.tell_models(0, &["Qwen/Qwen3-8B"]);
    let answer = fleet
        .ask(&[], &chat(&["x"]).replace("\"model\":\"m\",", ""))
        .await;
    assert_eq!(gathered(&answer, "reasoning_content"), "a");
}

#[tokio::test(start_paused = true)]
async fn the_request_says_whether_the_model_thinks() {
    let fleet = fleet(&model("qwen3.5", ""), |_| {
        stream(&[&delta("So."), STOP, "[DONE]"])
    });
    let check = async |more: &str, reasoning: &str, content: &str| {
        let body = chat(&["x"]).replace("\"model\"", &format!("{more}\"model\""));
        let answer = fleet.ask(&[], &body).await;
        assert_eq!(gathered(&answer, "reasoning_content"), reasoning, "{more}");
        assert_eq!(gathered(&answer, "content"), content, "{more}");
    };
    check("", "So.", "").await;
    let kwargs = |flag| format!(r#""chat_template_kwargs":{{"a":1,"enable_thinking":{flag}}},"#);
    check(&kwargs(false), "", "So.").await;
    check(&kwargs(true), "So.", "").await;
    // RC-034: another template's switch means nothing.
    check(
        &kwargs(false).replace("enable_thinking", "thinking"),
        "So.",
        "",
    )
    .await;
    // RC-021
    check(r#""separate_reasoning":false,"#, "", "So.").await;
    check(r#""include_reasoning":false,"#, "", "").await;
    check(r#""reasoning":{"exclude":true},"#, "", "").await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_a_client_left_leaves_nothing_behind() {
    // RC-046
    let fleet = fleet(&model("deepseek-r1", ""), |n| match n {
        0 => vec![
            stream_head(),
            chunk(&sse(&[&delta("thinking a")])),
            Step::Hang,
        ],
        _ => stream(&[&delta("</think>Reply b"), STOP, "[DONE]"]),
    });
    let response = fleet.open(&[], &chat(&["x"])).await;
    drop(response);
    let answer = fleet.ask(&[], &chat(&["x"])).await;
    assert_eq!(gathered(&answer, "reasoning_content"), "");
    assert_eq!(gathered(&answer, "content"), "Reply b");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_ends_with_what_was_held_back_and_the_error() {
    let fleet = fleet(&model("qwen3", ""), |_| {
        vec![stream_head(), chunk(&sse(&[&delta("a <thi")])), end()]
    });
    let answer = fleet.ask(&[], &chat(&["x"])).await;
    assert_eq!(gathered(&answer, "content"), "a <thi");
    assert!(answer.body.contains("answer_truncated") && !answer.body.contains("[DONE]"));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_family_is_refused_with_the_known_ones() {
    let fleet = fleet(&model("qwen3", ""), |_| stream(&[STOP, "[DONE]"]));
    let file = tempfile::NamedTempFile::new().unwrap();
    for (policy, why) in [
        (
            model("qwen33", ""),
            "`models[0].family`: family `qwen33`: unknown; name one of none,",
        ),
        ("[[families]]\nname='a'\nstyl='none'\n".to_owned(), "styl"),
    ] {
        std::fs::write(file.path(), format!("version = 1\n{policy}")).unwrap();
        let loaded = gateway::state::policy::PolicyInUse::load(Some(file.path()), &[]);
        let error = loaded.unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    assert_eq!(fleet.ask(&[], &chat(&["x"])).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_chat_template_counts_more_than_the_name_and_less_than_the_policy() {
    let text = "[THINK]a[/THINK]<think>b</think>c";
    let ask = async |policy: &str, template: Option<&str>| {
        let template = template.map(str::to_owned);
        let fleet = fleet_with(
            policy,
            |replica| replica.template = template,
            move |_| stream(&[&delta(text), STOP, "[DONE]"]),
        );
        let named = chat(&["x"]).replace("\"m\"", "\"Qwen/Qwen3-8B\"");
        let answer = fleet.ask(&[], &named).await;
        gathered(&answer, "reasoning_content")
    };
    assert_eq!(ask("", None).await, "b");
    assert_eq!(ask("", Some("{{ '[THINK]' }}")).await, "a");
    assert_eq!(ask("", Some("{{ messages }}")).await, "b");
    let policy = "[[models]]\nname = \"Qwen/*\"\nfamily = \"none\"\n";
    assert_eq!(ask(policy, Some("{{ '[THINK]' }}")).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_budget_goes_to_the_replica_in_its_engines_words_and_is_told() {
    let check = async |engine: Option<Engine>, more: &str, sent: &str, told: &str| {
        let fleet = fleet_with(
            &model("qwen3.5", "thinking_tokens_max = 100"),
            |replica| replica.engine = engine,
            |_| stream(&[&delta("So."), STOP, USAGE, "[DONE]"]),
        );
        let body = chat(&["x"]).replace("\"model\"", &format!("{more}\"model\""));
        let answer = fleet.ask(&[], &body).await;
        assert_eq!(answer.header("x-pinion-thinking-budget"), told, "{more}");
        let body = fleet.replicas[0].last().body;
        assert!(body.contains(sent), "{sent} in {body}");
        fleet.metric("gateway_thinking_budgets_total{replica=\"a\",result=\"lowered\"}")
    };
    let vllm = Some(Engine::Vllm);
    check(vllm, "", ",\"thinking_token_budget\":100}", "100").await;
    let asked = r#""thinking_token_budget":7,"#;
    assert_eq!(check(vllm, asked, asked, "7").await, 0.0);
    // RC-135, RC-132: lowered, and said so.
    let lowered = check(
        vllm,
        r#""thinking_token_budget":90,"max_tokens":90,"#,
        "\"thinking_token_budget\":45,",
        "45",
    );
    assert_eq!(lowered.await, 1.0);
    check(
        Some(Engine::LlamaCpp),
        asked,
        "\"thinking_budget_tokens\":7,",
        "7",
    )
    .await;
    // This project's own replica names its process, which is how it is known.
    check(None, asked, asked, "7").await;
    // Nothing is thought, so there is no budget.
    let off = r#""chat_template_kwargs":{"enable_thinking":false},"#;
    check(vllm, off, off, "").await;
    let off = r#""enable_thinking":false,"#;
    check(
        vllm,
        off,
        ",\"chat_template_kwargs\":{\"enable_thinking\":false}}",
        "",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_none_is_refused_by_its_field() {
    // RC-131
    let fleet = fleet("", |_| stream(&[STOP, "[DONE]"]));
    let body = chat(&["x"]).replace("\"model\"", "\"thinking_token_budget\":true,\"model\"");
    let answer = fleet.ask(&[], &body).await;
    assert_eq!(
        (answer.status, &*answer.code()),
        (400, "invalid_thinking_budget")
    );
    assert!(
        answer.body.contains("\"param\":\"thinking_token_budget\""),
        "{}",
        answer.body
    );
    assert_eq!(fleet.replicas[0].count(), 0);
}

#[tokio::test(start_paused = true)]
async fn earlier_reasoning_is_left_out_where_the_template_drops_it() {
    let fleet = fleet(&model("deepseek-r1", ""), |_| stream(&[STOP, "[DONE]"]));
    let thought = r#","reasoning_content":"old","#;
    let body =
        chat(&["x", "1", "y"]).replace(r#""assistant","#, &format!("\"assistant\"{thought}"));
    assert!(body.contains(thought));
    let _ = fleet.ask(&[], &body).await;
    let sent = fleet.replicas[0].last().body;
    assert!(
        !sent.contains("old") && sent.contains("include_usage"),
        "{sent}"
    );
}

/// Lines of a log that a test looks through.
#[derive(Clone, Default)]
struct Lines(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_planted_secret_reaches_only_the_field_for_reasoning() {
    const SECRET: &str = "PLANTED-SECRET";
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let thought = delta(&format!("<think>{SECRET}</think>So."));
    let own = format!(r#"{{"choices":[{{"index":0,"delta":{{"reasoning":"{SECRET}"}}}}]}}"#);
    let whole = answer_of(&format!("<think>{SECRET}</think>So."));
    for shown in ["field", "hidden", "summary"] {
        let (thought, own, whole) = (thought.clone(), own.clone(), whole.clone());
        let policy = model("qwen3", &format!("reasoning = \"{shown}\""));
        let fleet = fleet(&policy, move |n| match n {
            0 => stream(&[&thought, STOP, USAGE, "[DONE]"]),
            1 => stream(&[&own, &delta("So."), STOP, "[DONE]"]),
            2 => json(200, &whole),
            // Broken off inside the thought, as a stream and as a whole.
            3 => vec![
                stream_head(),
                chunk(&sse(&[&thought[..thought.len() - 9]])),
                end(),
            ],
            4 => vec![stream_head(), chunk(&sse(&[&own])), Step::Drop],
            _ => vec![
                Step::Send("HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n".into()),
                Step::Send(whole.clone()),
                Step::Drop,
            ],
        });
        let mut said = String::new();
        for _ in 0..6 {
            let answer = fleet.ask(&[], &chat(&["x"])).await;
            said.push_str(&answer.body);
            said.push_str(&format!("{:?}", answer.headers));
        }
        // A stream whose text is not JSON passes as it came where nothing is hidden.
        assert_eq!(said.contains(SECRET), shown == "field", "{shown}: {said}");
        assert!(!fleet.known.metrics.text().contains(SECRET));
        assert!(said.contains("So."));
    }
    let log = lines.0.lock().unwrap().clone();
    let log = String::from_utf8(log).unwrap();
    assert!(
        log.contains("request ended") && !log.contains(SECRET),
        "{log}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_cut_anywhere_is_split_as_the_whole_answer(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "<think>", "</think>", "</th", "ink>", "a", " ", "\n", "é", "\"", "<tool_call>\n{", "[THINK]", "[/THINK]",
        ]), 0..8),
        cuts in prop::collection::vec(0_usize..700, 0..20),
        family in prop::sample::select(vec!["qwen3", "deepseek-r1", "magistral", "gpt-oss", "glm-4.5"]),
    ) {
        let text = pieces.concat();
        let mut bytes: Vec<u8> = pieces.iter().flat_map(|piece| sse(&[&delta(piece)]).into_bytes()).collect();
        bytes.extend(sse(&[STOP, "[DONE]"]).into_bytes());
        let whole = answer_of(&text);
        // Cut where the script can say it: between letters.
        let said = String::from_utf8(bytes).unwrap();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| *at < said.len() && said.is_char_boundary(*at)).collect();
        cuts.extend([0, said.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        let fleet = fleet(&model(family, ""), move |n| {
            if n > 0 {
                return json(200, &whole);
            }
            let parts = cuts.windows(2).map(|cut| chunk(&said[cut[0]..cut[1]]));
            let mut steps = vec![stream_head()];
            steps.extend(parts);
            steps.push(end());
            steps
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let (stream, whole) = runtime.block_on(async {
            (fleet.ask(&[], &chat(&["x"])).await, fleet.ask(&[], &chat(&["x"])).await)
        });
        let whole: serde_json::Value = serde_json::from_str(&whole.body).unwrap();
        let message = &whole["choices"][0]["message"];
        for field in ["reasoning_content", "content"] {
            prop_assert_eq!(gathered(&stream, field), message[field].as_str().unwrap_or(""), "{}", field);
        }
    }
}
