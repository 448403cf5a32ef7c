//! Lanes choose thinking: by the client's wish in every dialect, by rules and the difficulty, and by what the session did before.

use chat_wire::thinking::Engine;
use serde_json::Value;

use crate::fleet::{Answer, Fleet};
use crate::replica::Scripted;

const LANES: &str = r#"
version = 1
[[models]]
name = "m"
family = "FAMILY"
[[lanes]]
name = "quick"
thinking = "off"
wishes = "WISHES"
[[lanes]]
name = "think"
thinking = "on"
budget = 100
budget_max = 500
effort = "medium"
max_tokens = 4000
wishes = "WISHES"
[[rules]]
name = "hard"
when = 'RULE'
lane = "think"
"#;
const BY_HEADER: &str = "request.header[\"x-hard\"] == \"1\"";
const HARD: (&str, &str) = ("x-hard", "1");

struct Lanes {
    replicas: Vec<Scripted>,
    fleet: Fleet,
}

impl Lanes {
    fn new(family: &str, wishes: &str, rule: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.toml");
        let text = LANES.replace("FAMILY", family).replace("WISHES", wishes);
        std::fs::write(&file, text.replace("RULE", rule)).unwrap();
        let replicas: Vec<Scripted> = ["a", "b", "c"].map(Scripted::well).into();
        let fleet = Fleet::with(replicas.clone(), |config| {
            config.policy = Some(file);
            for replica in &mut config.replicas {
                replica.engine = Some(Engine::Vllm);
            }
        });
        Self { replicas, fleet }
    }

    /// The answer, and what the replica got.
    async fn ask(&self, headers: &[(&str, &str)], body: &str) -> (Answer, Value) {
        let answer = self.fleet.ask(headers, body).await;
        let at = self
            .replicas
            .iter()
            .find(|one| one.name == answer.replica());
        let got = at.map_or(Value::Null, |one| {
            serde_json::from_str(&one.last().body).unwrap()
        });
        (answer, got)
    }
}

fn body(more: &str, text: &str) -> String {
    format!(
        r#"{{"model":"m","stream":true,{more}"messages":[{{"role":"user","content":"{text}"}}]}}"#
    )
}

fn why(answer: &Answer) -> (&str, &str) {
    if answer.status == 200 {
        (
            answer.header("x-pinion-lane"),
            answer.header("x-pinion-lane-reason"),
        )
    } else {
        ("400", answer.header("x-pinion-reason"))
    }
}

/// Each wish in one lane: what becomes of it where wishes are honoured, capped and refused.
async fn check(headers: &[(&str, &str)], wishes: &[(&str, &str)], expect: [(&str, &str); 3]) {
    for (rule, expect) in ["honour", "cap", "refuse"].into_iter().zip(expect) {
        let lanes = Lanes::new("qwen3", rule, BY_HEADER);
        for (more, text) in wishes {
            let (answer, got) = lanes.ask(headers, &body(more, text)).await;
            assert_eq!(why(&answer), expect, "{rule}: {more} {text}");
            let thinks = expect.0 == "think";
            let switch = &got["chat_template_kwargs"]["enable_thinking"];
            assert!(
                got.is_null() || *switch == Value::Bool(thinks),
                "{rule}: {more} {got}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_dialect_of_a_wish_to_think_is_obeyed_capped_or_refused() {
    let wishes = [
        (r#""reasoning_effort":"high","#, "x"),
        (r#""reasoning":{"effort":"low"},"#, "x"),
        (r#""reasoning":{"enabled":true},"#, "x"),
        (r#""thinking":{"type":"enabled"},"#, "x"),
        (r#""thinking":{"type":"adaptive"},"#, "x"),
        (r#""enable_thinking":true,"#, "x"),
        (r#""chat_template_kwargs":{"enable_thinking":true},"#, "x"),
        (r#""chat_template_kwargs":{"thinking":true},"#, "x"),
        ("", "x /think"),
    ];
    let expect = [
        ("think", "wish"),
        ("quick", "wish_capped"),
        ("400", "wish_refused"),
    ];
    check(&[], &wishes, expect).await;
}

#[tokio::test(start_paused = true)]
async fn every_dialect_of_a_wish_not_to_think_is_obeyed_or_refused() {
    let wishes = [
        (r#""reasoning_effort":"none","#, "x"),
        // RC-158
        (r#""reasoning_effort":"minimal","#, "x"),
        (r#""reasoning":{"effort":"none"},"#, "x"),
        (r#""reasoning":{"enabled":false},"#, "x"),
        (r#""thinking":{"type":"disabled"},"#, "x"),
        (r#""enable_thinking":false,"#, "x"),
        (r#""chat_template_kwargs":{"enable_thinking":false},"#, "x"),
        // RC-156
        (r#""chat_template_kwargs":{"thinking":false},"#, "x"),
        ("", "x /no_think"),
        (r#""enable_thinking":true,"#, "/nothink x"),
    ];
    let expect = [
        ("quick", "wish"),
        ("quick", "wish"),
        ("400", "wish_refused"),
    ];
    check(&[HARD], &wishes, expect).await;
}

#[tokio::test(start_paused = true)]
async fn budgets_efforts_and_named_lanes_are_wishes_too() {
    let over = [
        (r#""thinking_token_budget":501,"#, "x"),
        (r#""thinking_token_budget":-1,"#, "x"),
        (r#""thinking":{"type":"enabled","budget_tokens":501},"#, "x"),
        (r#""reasoning":{"max_tokens":501},"#, "x"),
    ];
    let capped = ("think", "wish_capped");
    check(&[HARD], &over, [capped, capped, ("400", "wish_refused")]).await;
    let greater = [(r#""reasoning_effort":"max","#, "x")];
    let expect = [("think", "rule"), capped, ("400", "wish_refused")];
    check(&[HARD], &greater, expect).await;
    let expect = [
        ("think", "lane_named"),
        ("quick", "wish_capped"),
        ("400", "wish_refused"),
    ];
    check(&[("x-pinion-lane", "think")], &[("", "x")], expect).await;
    let unknown = ("400", "invalid_wish");
    check(&[("x-pinion-lane", "thin")], &[("", "x")], [unknown; 3]).await;
    // RC-158
    check(
        &[],
        &[(r#""reasoning_effort":"banana","#, "x")],
        [unknown; 3],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lane_sets_budget_and_length_and_counts() {
    let lanes = Lanes::new("qwen3", "honour", BY_HEADER);
    let (answer, got) = lanes.ask(&[HARD], &body("", "x")).await;
    assert_eq!(answer.header("x-pinion-thinking-budget"), "100");
    assert_eq!(
        (&got["thinking_token_budget"], &got["max_tokens"]),
        (&100.into(), &4_000.into())
    );
    let (_, got) = lanes
        .ask(
            &[HARD],
            &body(r#""thinking_token_budget":501,"max_tokens":9000,"#, "x"),
        )
        .await;
    assert_eq!(
        (&got["thinking_token_budget"], &got["max_tokens"]),
        (&500.into(), &4_000.into())
    );
    let (_, got) = lanes.ask(&[], &body(r#""max_tokens":9,"#, "x")).await;
    assert_eq!(
        (&got["thinking_token_budget"], &got["max_tokens"]),
        (&Value::Null, &9.into())
    );
    // RC-164: the switch is always said, so an engine's own default means nothing.
    assert_eq!(got["chat_template_kwargs"]["enable_thinking"], false);
    let metric = |series: &str| lanes.fleet.metric(series);
    assert_eq!(
        metric("gateway_lane_requests_total{lane=\"think\",reason=\"rule\"}"),
        1.0
    );
    assert_eq!(
        metric("gateway_lane_requests_total{lane=\"think\",reason=\"wish_capped\"}"),
        1.0
    );
    assert_eq!(metric("gateway_wishes_total{result=\"capped\"}"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_changes_lanes_each_turn_stays_on_its_replica() {
    // RC-077
    let lanes = Lanes::new("qwen3", "honour", BY_HEADER);
    for session in ["s", "t", "u", "v"] {
        let name = ("x-session-id", session);
        let (first, _) = lanes.ask(&[name], &body("", session)).await;
        for turn in 0..4 {
            let headers = [name, HARD];
            let (answer, _) = lanes
                .ask(&headers[..1 + turn % 2], &body("", session))
                .await;
            assert_eq!(why(&answer).0, ["quick", "think"][turn % 2]);
            assert_eq!(
                (answer.replica(), answer.reason()),
                (first.replica(), "pin_held")
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_loop_keeps_its_lane_and_a_difficulty_within_the_margin_too() {
    let lanes = Lanes::new("qwen3", "honour", BY_HEADER);
    let name = ("x-session-id", "s");
    let tool = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":""},{"role":"tool","content":"7"}]}"#;
    let (answer, _) = lanes.ask(&[name], tool).await;
    assert_eq!(why(&answer), ("quick", "first_lane"));
    lanes.ask(&[name, HARD], &body("", "x")).await;
    let (answer, got) = lanes.ask(&[name], tool).await;
    assert_eq!(why(&answer), ("think", "tool_loop"));
    assert_eq!(got["chat_template_kwargs"]["enable_thinking"], true);
    let lanes = Lanes::new("qwen3", "honour", "difficulty > 0.4");
    let hard =
        "Prove that the sum of the first n odd numbers is n squared, then compute it for n = 137.";
    let (answer, _) = lanes.ask(&[name], &body("", hard)).await;
    assert_eq!(why(&answer), ("think", "difficulty"));
    let (answer, _) = lanes
        .ask(&[name], &body("", &hard.replace("137", "139 or 140")))
        .await;
    assert_eq!(why(&answer).0, "think");
    let (answer, _) = lanes
        .ask(
            &[name],
            &body("", "Hello! How are you doing today, my friend?"),
        )
        .await;
    assert_eq!(why(&answer), ("quick", "difficulty"));
    assert_eq!(lanes.fleet.metric("gateway_difficulty_count"), 3.0);
}

#[tokio::test(start_paused = true)]
async fn a_family_with_the_effort_at_the_head_goes_only_up() {
    // RC-086, RC-163
    let lanes = Lanes::new("gpt-oss", "honour", BY_HEADER);
    let name = ("x-session-id", "s");
    let check = async |headers: &[(&str, &str)], more: &str, lane, effort: &str| {
        let (answer, got) = lanes.ask(headers, &body(more, "x")).await;
        assert_eq!(
            (why(&answer), &got["reasoning_effort"]),
            (lane, &effort.into())
        );
        assert!(got["chat_template_kwargs"].is_null());
    };
    check(&[name], "", ("quick", "first_lane"), "low").await;
    check(&[name, HARD], "", ("think", "rule"), "medium").await;
    check(&[name], "", ("think", "effort_kept"), "medium").await;
    check(
        &[name],
        r#""reasoning_effort":"max","#,
        ("think", "effort_kept"),
        "high",
    )
    .await;
    check(
        &[name],
        r#""reasoning_effort":"none","#,
        ("quick", "wish"),
        "low",
    )
    .await;
}
