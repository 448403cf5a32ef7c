use std::path::Path;

use expect_test::{Expect, expect};

use super::{Config, Limits, Timeouts};

const SMALLEST: &str = "listen = '127.0.0.1:1'\nadmin_listen = '127.0.0.1:2'\n[[replicas]]\nname = 'a'\nurl = 'http://h:3'\n";

#[track_caller]
fn check(text: &str, report: Expect) {
    let shown = match Config::parse("gateway.toml", text, Path::new("/etc/pinion")) {
        Ok(config) => format!("{config:#?}"),
        Err(error) => error.to_string(),
    };
    report.assert_eq(&shown);
}

#[test]
fn the_example_file_is_the_defaults() {
    let text = include_str!("../../gateway.example.toml");
    let config = Config::parse("gateway.example.toml", text, Path::new("")).unwrap();
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.timeouts, Timeouts::default());
    assert_eq!(config.replicas.len(), 2);
}

#[test]
fn what_is_left_out_has_its_default_and_paths_start_at_the_file() {
    let tls = "[tls]\ncert = 'cert.pem'\nkey = '/run/key.pem'\n";
    let config = Config::parse("g", &format!("{SMALLEST}{tls}"), Path::new("/etc/pinion")).unwrap();
    assert_eq!(config.limits, Limits::default());
    let tls = config.tls.unwrap();
    assert_eq!(tls.cert, Path::new("/etc/pinion/cert.pem"));
    assert_eq!(tls.key, Path::new("/run/key.pem"));
}

#[test]
fn every_problem_is_told_at_once_with_its_place() {
    check(
        "listen = 8080\npolcy = 'x'\n[[replicas]]\nname = 'a b'\nurl = 'https://h:1'\n[[replicas]]\nname = 'b'\nurl = 'http://h:1'\n[[replicas]]\nname = 'b'\nurl = 'http://h'\nweight = 2\n[limits]\nin_flight_max = 0\n[timeouts]\nidle_secnds = 4\n[tls]\ncert = 'c'\n",
        expect![[r#"
            gateway.toml:1:1: `admin_listen` is missing, expected an address and port such as `127.0.0.1:8080`
            gateway.toml:1:10: `listen` is `8080`, expected a string in quotes
            gateway.toml:2:1: unknown key `polcy`; did you mean `policy`?
            gateway.toml:4:8: `replicas[0].name` is `a b`, expected 1 to 64 letters, digits, `-`, `_` or `.`
            gateway.toml:5:7: `replicas[0].url` is `https://h:1`, expected `http://host:port` with no path (TLS to replicas is not supported yet)
            gateway.toml:9:1: a second replica is called `b`; names are unique
            gateway.toml:11:7: `replicas[2].url` is `http://h`, expected `http://host:port` with no path (TLS to replicas is not supported yet)
            gateway.toml:12:1: unknown key `replicas[2].weight`; known keys: name, url, engine, tokenizer_config
            gateway.toml:14:17: `limits.in_flight_max` is `0`, expected a whole number from 1 to 1000000
            gateway.toml:16:1: unknown key `timeouts.idle_secnds`; did you mean `idle_seconds`?
            gateway.toml:17:1: `tls.key` is missing, expected the path of its PEM private key
            11 problems in gateway.toml; the gateway did not start"#]],
    );
}

#[test]
fn a_syntax_error_has_its_place() {
    check(
        "listen = '127.0.0.1:1'\nadmin_listen = \n",
        expect![[r#"
            gateway.toml:2:16: string values must be quoted, expected literal string
            1 problem in gateway.toml; the gateway did not start"#]],
    );
}

#[test]
fn an_empty_file_names_what_it_needs() {
    check(
        "",
        expect![[r#"
            gateway.toml:1:1: `admin_listen` is missing, expected an address and port such as `127.0.0.1:8080`
            gateway.toml:1:1: `listen` is missing, expected an address and port such as `127.0.0.1:8080`
            gateway.toml:1:1: `replicas` is missing, expected at least one table `[[replicas]]` with `name` and `url`
            3 problems in gateway.toml; the gateway did not start"#]],
    );
}
