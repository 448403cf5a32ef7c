//! Which changes of a request change the prompt that its replica is believed to hold.

use crate::fleet::Fleet;
use crate::ledger::{CACHE_TOKENS, Caching, Talk};

/// The share of the second request's prompt that the gateway predicts to be cached after the first, both at one replica.
async fn predicted_share(first: &str, second: &str) -> f64 {
    share_in(&caching(), first, second).await
}

async fn share_in(fleet: &Fleet, first: &str, second: &str) -> f64 {
    fleet.ask(&[], first).await;
    let prompt = || fleet.metric("gateway_prompt_tokens_total{lane=\"\",replica=\"a\"}");
    let before = prompt();
    fleet.ask(&[], second).await;
    let predicted = fleet.metric("gateway_predicted_cached_tokens_total{lane=\"\",replica=\"a\"}");
    predicted / (prompt() - before)
}

fn caching() -> Fleet {
    Fleet::new(vec![Caching::new(CACHE_TOKENS).scripted("a")])
}

fn caching_under(policy: &str) -> (Fleet, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, format!("version = 1\n{policy}")).unwrap();
    let replica = Caching::new(CACHE_TOKENS).scripted("a");
    let fleet = Fleet::with(vec![replica], |config| config.policy = Some(file));
    (fleet, folder)
}

#[tokio::test(start_paused = true)]
async fn what_changes_the_prompt_changes_the_prediction_and_nothing_else_does() {
    let body = Talk::new(0).next();
    let with = |field: &str| body.replacen('{', &format!("{{{field},"), 1);
    let same = [
        // A field's place, sampling and streaming are not in the prompt.
        with(r#""temperature":0.3"#),
        body.replace(
            r#""model":"m","stream":true,"#,
            r#""stream":true,"seed":7,"model":"m","#,
        ),
    ];
    for second in same {
        assert!(predicted_share(&body, &second).await > 0.99, "{second}");
    }
    let tool = |keys: &str| {
        with(&format!(
            r#""tools":[{{"type":"function","function":{{{keys}}}}}]"#
        ))
    };
    let (one, other) = (r#""name":"f","strict":true"#, r#""strict":true,"name":"f""#);
    assert!(predicted_share(&tool(one), &tool(one)).await > 0.99);
    // Tools stand at the head of a prompt. RC-081: as the client wrote them, so their keys in another order share nothing.
    for (first, second) in [(&body, &tool(one)), (&tool(one), &tool(other))] {
        assert!(predicted_share(first, second).await < 0.01, "{second}");
    }
    // RC-079: a clock in the system prompt. What lies behind it is not believed to be cached.
    let clock = |time: &str| body.replacen("You help", &format!("Now: {time}. You help"), 1);
    assert!(predicted_share(&clock("09:15:02"), &clock("09:15:41")).await < 0.01);
    assert!(
        predicted_share(&with(r#""cache_salt":"x""#), &with(r#""cache_salt":"y""#)).await < 0.01
    );
}

/// A request with one tool, whose schema has this text.
fn with_tool(schema: &str) -> String {
    let tool = format!(
        r#""tools":[{{"type":"function","function":{{"name":"f","parameters":{schema}}}}}],"#
    );
    Talk::new(0).next().replacen('{', &format!("{{{tool}"), 1)
}

/// The tools of the last request as the replica got them.
fn tools(fleet: &Fleet) -> String {
    let body = fleet.replicas[0].last().body;
    let from = body.find(r#""tools":"#).unwrap() + r#""tools":"#.len();
    let until = body.find(r#","model":"#).unwrap();
    body[from..until].to_owned()
}

const ONE: &str = r#"{"type":"object","properties":{"zulu":{"type":"string"},"port":{"type":"string"}},"required":["port"]}"#;
const OTHER: &str = r#"{"required": ["port"], "type": "object", "properties": {"zulu": {"type": "string"}, "port": {"type": "string"}}}"#;

#[tokio::test(start_paused = true)]
async fn rc_081_tools_in_one_order_share_their_prefix_where_the_policy_wants_it() {
    let (one, other) = (with_tool(ONE), with_tool(OTHER));
    // Off, they go out as they came. RC-082
    let fleet = caching();
    assert!(share_in(&fleet, &one, &other).await < 0.01);
    assert!(tools(&fleet).contains(OTHER), "{}", tools(&fleet));
    let (fleet, _folder) = caching_under("[prefix]\ncanonical_tools = true\n");
    assert!(share_in(&fleet, &one, &other).await > 0.99);
    let second = tools(&fleet);
    fleet.ask(&[], &one).await;
    assert_eq!(tools(&fleet), second);
    let properties = r#""properties":{"zulu":{"type":"string"},"port":{"type":"string"}}"#;
    assert!(
        second.contains(properties),
        "names keep their order: {second}"
    );
    let all = "[prefix]\ncanonical_tools = true\nsort_properties = true\n";
    let (fleet, _folder) = caching_under(all);
    fleet.ask(&[], &one).await;
    assert!(tools(&fleet).contains(r#""properties":{"port""#));
    // What is not the tools is the client's own bytes.
    let sent = fleet.replicas[0].last().body;
    let rest = |body: &str| body[body.find(r#""model""#).unwrap()..].to_owned();
    let usage = r#","stream_options":{"include_usage":true}}"#;
    let ours = rest(&one);
    assert_eq!(rest(&sent), format!("{}{usage}", &ours[..ours.len() - 1]));
}

#[tokio::test(start_paused = true)]
async fn rc_086_another_effort_shares_nothing_where_the_template_writes_it_first() {
    let turn = |model: &str, effort: &str| {
        let body = Talk::new(0).next();
        body.replacen(
            r#"{"model":"m""#,
            &format!(r#"{{"reasoning_effort":"{effort}","model":"{model}""#),
            1,
        )
    };
    let check = async |fleet: &Fleet, model: &str, shared: bool| {
        let share = share_in(fleet, &turn(model, "high"), &turn(model, "low")).await;
        assert_eq!(share > 0.99, shared, "{model}: {share}");
        assert!(shared || share < 0.01, "{model}: {share}");
    };
    check(&caching(), "openai/gpt-oss-20b", false).await;
    check(&caching(), "qwen3-8b", true).await;
    check(&caching(), "prod", true).await;
    let (fleet, _folder) = caching_under("[prefix]\neffort_in_head = [\"prod\"]\n");
    check(&fleet, "prod", false).await;
    // The same effort is the same prompt, however it is said.
    let said = turn("prod", "low").replace(
        r#""reasoning_effort":"low""#,
        r#""chat_template_kwargs":{"reasoning_effort":"low"}"#,
    );
    let (fleet, _folder) = caching_under("[prefix]\neffort_in_head = [\"prod\"]\n");
    assert!(share_in(&fleet, &turn("prod", "low"), &said).await > 0.99);
}

#[tokio::test(start_paused = true)]
async fn rc_084_reasoning_that_a_client_drops_ends_the_predicted_prefix_there() {
    let system = format!(
        r#"{{"role":"system","content":"{}"}}"#,
        "You help sailors. ".repeat(300)
    );
    let turn = |reasoning: &str| {
        format!(
            r#"{{"model":"m","stream":true,"messages":[{system},{{"role":"user","content":"Depth?"}},{{"role":"assistant",{reasoning}"content":null,"tool_calls":[]}},{{"role":"tool","content":"{}"}}]}}"#,
            "4 m ".repeat(1_500)
        )
    };
    let (with, without) = (turn(r#""reasoning_content":"need sonar","#), turn(""));
    assert!(predicted_share(&with, &with).await > 0.99);
    // The system prompt is about half of it.
    let share = predicted_share(&with, &without).await;
    assert!((0.3..0.6).contains(&share), "{share}");
}
