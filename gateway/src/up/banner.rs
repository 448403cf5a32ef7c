//! What a person sees when everything is up.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::sample;
use crate::cli::Up;
use crate::state::Known;

/// Between two looks at the fleet.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long the models may come later than the readiness.
const MODELS_LIMIT: Duration = Duration::from_secs(2);
/// Whether the built-in model is asked to think, in the order of the lines shown.
const LANES: [bool; 2] = [true, false];

/// Prints where to talk once every replica is ready.
pub(super) async fn when_ready(
    known: Arc<Known>,
    options: Up,
    clients: SocketAddr,
    operators: SocketAddr,
) {
    let started = Instant::now();
    let replicas = known.fleet.replicas();
    while !replicas.iter().all(|replica| replica.is_ready()) {
        sleep(LOOK_EVERY).await;
    }
    let ready = Instant::now();
    while known.fleet.models().names().is_empty() && ready.elapsed() < MODELS_LIMIT {
        sleep(LOOK_EVERY).await;
    }
    let names = known.fleet.models().names();
    let model = names.split(", ").next().unwrap_or_default();
    let model = model.replace(['\'', '"', '\\'], "");
    let clients = reachable(clients);
    let mut answers = Vec::new();
    if options.is_builtin() && !options.no_sample {
        for thinks in LANES {
            answers.push(sample::ask(clients, sample::body(&model, thinks)).await);
        }
    }
    let text = text(
        &options,
        &model,
        clients,
        reachable(operators),
        ready - started,
        &answers,
    );
    #[expect(clippy::print_stdout, reason = "the answer to what was asked for")]
    {
        println!("{text}");
    }
}

fn text(
    options: &Up,
    model: &str,
    clients: SocketAddr,
    operators: SocketAddr,
    took: Duration,
    answers: &[String],
) -> String {
    let (count, path) = (options.replicas, options.model.display());
    let noun = if count == 1 { "replica" } else { "replicas" };
    let seconds = took.as_secs_f32();
    let curl =
        format!("curl http://{clients}/v1/chat/completions -H 'content-type: application/json'");
    let mut text =
        format!("\n{count} {noun} of {path} behind http://{clients}, ready after {seconds:.1} s\n");
    // Writing to a String cannot fail.
    if options.is_builtin() {
        let mut answers = answers.iter();
        for (name, thinks) in ["think", "at once"].into_iter().zip(LANES) {
            let body = sample::body(model, thinks);
            let _ = write!(text, "\n  {name:<9} {curl} \\\n              -d '{body}'");
            if let Some(answer) = answers.next() {
                let _ = write!(text, "\n            {answer}");
            }
        }
    } else {
        let body = format!(
            r#"{{"model":"{model}","messages":[{{"role":"user","content":"Name three rivers."}}]}}"#
        );
        let _ = write!(text, "\n  talk      {curl} \\\n              -d '{body}'");
    }
    let _ = write!(
        text,
        r#"
            add "stream":true, or -H 'x-session-id: me' to name the conversation
  metrics   curl http://{operators}/metrics
  state     curl http://{operators}/state
  stop      Ctrl-C
"#
    );
    text
}

/// An address to paste: one that listens everywhere is reached on this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        return SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port());
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, model: &str, answers: &[String]) -> String {
        let options = Up {
            model: path.into(),
            no_sample: answers.is_empty(),
            replicas: 2,
            listen: "0.0.0.0:8080".parse().unwrap(),
            admin_listen: "127.0.0.1:9090".parse().unwrap(),
            policy: None,
            replica_bin: None,
            restart_seconds: 1,
            replica_args: Vec::new(),
        };
        text(
            &options,
            model,
            reachable(options.listen),
            options.admin_listen,
            Duration::from_millis(1240),
            answers,
        )
    }

    #[test]
    fn the_banner_is_as_written() {
        expect_test::expect![[r#"

            2 replicas of models/small.gguf behind http://127.0.0.1:8080, ready after 1.2 s

              talk      curl http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' \
                          -d '{"model":"small","messages":[{"role":"user","content":"Name three rivers."}]}'
                        add "stream":true, or -H 'x-session-id: me' to name the conversation
              metrics   curl http://127.0.0.1:9090/metrics
              state     curl http://127.0.0.1:9090/state
              stop      Ctrl-C
        "#]]
        .assert_eq(&shown("models/small.gguf", "small", &[]));
    }

    #[test]
    fn the_banner_of_the_builtin_model_shows_both_lanes_and_their_answers() {
        let answers = [
            "answers `1692` after 116 tokens of reasoning",
            "answers `1412` at once",
        ];
        expect_test::expect![[r#"

            2 replicas of builtin behind http://127.0.0.1:8080, ready after 1.2 s

              think     curl http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' \
                          -d '{"model":"abacus","messages":[{"role":"user","content":"What is 47*36?"}]}'
                        answers `1692` after 116 tokens of reasoning
              at once   curl http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' \
                          -d '{"model":"abacus","messages":[{"role":"user","content":"What is 47*36?"}],"chat_template_kwargs":{"enable_thinking":false}}'
                        answers `1412` at once
                        add "stream":true, or -H 'x-session-id: me' to name the conversation
              metrics   curl http://127.0.0.1:9090/metrics
              state     curl http://127.0.0.1:9090/state
              stop      Ctrl-C
        "#]].assert_eq(&shown(
            "builtin",
            "abacus",
            &answers.map(str::to_owned),
        ));
        assert!(!shown("builtin", "abacus", &[]).contains("answers"));
    }
}
