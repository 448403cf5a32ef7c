//! What `gateway policy explain` prints.

use super::*;

#[test]
fn explain_tells_what_each_replica_would_cost_and_why() {
    let (folder, [one, two, state]) = files([
        ("1.json", TURN_1),
        ("2.json", TURN_2),
        ("state.json", STATE),
    ]);
    let seen = format!("a={}", text(&one));
    let named = ["--header", "X-Session-Id: s"];
    let asked = [
        "explain",
        "--request",
        text(&two),
        "--state",
        text(&state),
        "--seen",
        &seen,
    ];
    check(
        folder.path(),
        &[&asked[..], &named[..]].concat(),
        &expect![[r#"
            difficulty: 0.133, mostly by before: bias -1.34, before: question_any +0.63, bias -0.45, before: question_last -0.45, before: "replica" +0.30, before: "which" -0.26
            session: named by a header
            pin: a
            seen before: the first 1 of 3 messages, at a
            prompt: about 29 tokens
            goes to: a
            reason: pin_held, the session is pinned to this replica, and no other costs less by the policy's margin

            | replica | holds tokens | wait ms | prefill ms | crowding ms | in flight ms | leave ms | total ms |
            |---------|-------------:|--------:|-----------:|------------:|-------------:|---------:|---------:|
            | a       |           11 |     0.0 |        1.8 |         2.9 |          0.3 |      0.0 |      5.1 |
            | b       |            0 |     0.0 |        2.9 |         7.6 |          0.0 |    250.0 |    260.5 |

            not ready: c
        "#]],
    );
    check(
        folder.path(),
        &asked,
        &expect![[r#"
            difficulty: 0.133, mostly by before: bias -1.34, before: question_any +0.63, bias -0.45, before: question_last -0.45, before: "replica" +0.30, before: "which" -0.26
            session: not named; recognised by what it says
            pin: none
            seen before: the first 1 of 3 messages, at a
            prompt: about 29 tokens
            goes to: a
            reason: prefix_seen, this replica served the start of this conversation

            | replica | holds tokens | wait ms | prefill ms | crowding ms | in flight ms | leave ms | total ms |
            |---------|-------------:|--------:|-----------:|------------:|-------------:|---------:|---------:|
            | a       |           11 |     0.0 |        1.8 |         2.9 |          0.3 |      0.0 |      5.1 |
            | b       |            0 |     0.0 |        2.9 |         7.6 |          0.0 |    250.0 |    260.5 |

            not ready: c
        "#]],
    );
    check(
        folder.path(),
        &["explain", "--request", text(&one), "--replicas", "2"],
        &expect![[r#"
            difficulty: 0.139, mostly by bias -1.79, question_any +0.84, question_last -0.60, "replica" +0.40, "which" -0.35, capital_share -0.22
            session: not named; recognised by what it says
            pin: none
            seen before: nothing
            prompt: about 11 tokens
            goes to: replica-0
            reason: prefix_home, a new conversation, on the replica that its first messages lead to

            | replica   | holds tokens | wait ms | prefill ms | crowding ms | in flight ms | leave ms | total ms |
            |-----------|-------------:|--------:|-----------:|------------:|-------------:|---------:|---------:|
            | replica-0 |            0 |     0.0 |        1.1 |         0.0 |          0.0 |      0.0 |      1.1 |
            | replica-1 |            0 |     0.0 |        1.1 |         0.0 |          0.0 |      0.0 |      1.1 |
        "#]],
    );
}

#[test]
fn explain_says_what_it_cannot_use() {
    let (folder, [one, state, broken]) = files([
        ("1.json", TURN_1),
        ("state.json", STATE),
        ("broken.json", "{"),
    ]);
    let seen = format!("d={}", text(&one));
    let state = ["--state", text(&state)];
    let request = ["explain", "--request", text(&one)];
    check(
        folder.path(),
        &[&request[..], &state[..], &["--seen", &seen]].concat(),
        &expect![[r#"
            failed: --seen d=1.json: no replica is called so; here are a, b, c
        "#]],
    );
    check(
        folder.path(),
        &["explain", "--request", text(&broken)],
        &expect![[r#"
            failed: broken.json: at byte 1: expected a key in double quotes; expected the body of a chat completion request
        "#]],
    );
    check(
        folder.path(),
        &[&request[..], &["--state", text(&broken)]].concat(),
        &expect![[r#"
            failed: broken.json: EOF while parsing an object at line 1 column 1; expected what a gateway prints at /state on its admin address
        "#]],
    );
    for wrong in [["--header", "no colon"], ["--seen", "no-file"]] {
        let line = ["gateway", "policy"].iter().chain(&request).chain(&wrong);
        assert!(Cli::try_parse_from(line).is_err(), "{wrong:?}");
    }
}

const LANES: &str = "version = 1\n[[pools]]\nname = \"big\"\nreplicas = [\"replica-1\"]\n[[lanes]]\nname = \"usual\"\n[[lanes]]\nname = \"long\"\npool = \"big\"\n[[rules]]\nname = \"broken\"\nwhen = \"1 / request.max_tokens == 1\"\nlane = \"long\"\n[[rules]]\nname = \"research\"\nwhen = \"request.header['x-team'] == 'research'\"\nlane = \"long\"\n";

#[test]
fn explain_names_the_lane_and_shows_its_pool_only() {
    let (folder, [turn, policy]) = files([("1.json", TURN_1), ("lanes.toml", LANES)]);
    let arguments = [
        "explain",
        "--request",
        text(&turn),
        "--policy",
        text(&policy),
    ];
    let team = ["--header", "x-team: research"];
    check(
        folder.path(),
        &[&arguments[..], &team].concat(),
        &expect![[r#"
            lane: long, by the rule research: request.header['x-team'] == 'research'
            rule that cannot be worked out: broken
            pool: big (replica-1)
            difficulty: 0.139, mostly by bias -1.79, question_any +0.84, question_last -0.60, "replica" +0.40, "which" -0.35, capital_share -0.22
            session: not named; recognised by what it says
            pin: none
            seen before: nothing
            prompt: about 11 tokens
            goes to: replica-1
            reason: prefix_home, a new conversation, on the replica that its first messages lead to

            | replica   | holds tokens | wait ms | prefill ms | crowding ms | in flight ms | leave ms | total ms |
            |-----------|-------------:|--------:|-----------:|------------:|-------------:|---------:|---------:|
            | replica-1 |            0 |     0.0 |        1.1 |         0.0 |          0.0 |      0.0 |      1.1 |
        "#]],
    );
    let said = said(folder.path(), &arguments).unwrap();
    assert!(said.starts_with("lane: usual, no rule holds, so it is the first lane\nrule that cannot be worked out: broken\npool: all replicas\n"), "{said}");
}

#[test]
fn explain_says_what_the_limits_say() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"Depth?"}]}"#;
    let (folder, [policy, request]) = files([
        (
            "p.toml",
            "version = 1\n[limits]\nin_flight_per_session = 4\nprompt_bytes_max = 35\n",
        ),
        ("turn.json", body),
    ]);
    let (policy, request) = (text(&policy), text(&request));
    let explain = |more: &[&str]| {
        let mut arguments = vec!["explain", "--request", request, "--policy", policy];
        arguments.extend(more);
        let said = said(folder.path(), &arguments).unwrap();
        said.lines().take(2).collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        limit: 34 of 35 bytes of tools and messages
        limit: not counted by session, as nothing names one"#]]
    .assert_eq(&explain(&[]));
    std::fs::write(
        policy,
        "version = 1\n[limits]\nin_flight_per_session = 4\nprompt_bytes_max = 33\n",
    )
    .unwrap();
    expect![[r#"
        refused: its tools and messages are 34 bytes, more than `limits.prompt_bytes_max` = 33; else it would go so:
        limit: 4 requests of this session at a time, at each gateway"#]]
    .assert_eq(&explain(&["--header", "x-session-id: s"]));
}
