//! A session whose prompt is no continuation of its last one: where it differs is told.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use crate::fleet::Fleet;
use crate::replica::Scripted;

/// Log lines, kept.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What the line of the second request says of its change, where one session sends both.
async fn check(first: &str, second: &str, expect: &str) {
    let lines = Lines::default();
    let kept = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer(move || kept.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let fleet = Fleet::new(vec![Scripted::well("a")]);
    for body in [first, second] {
        let answer = fleet.ask(&[("x-session-id", "s")], body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    drop(guard);
    let lines = lines.0.lock().unwrap().clone();
    let lines = String::from_utf8(lines).unwrap();
    let ended: Vec<&str> = lines
        .lines()
        .filter(|line| line.contains("request ended"))
        .collect();
    assert_eq!(ended.len(), 2, "{lines}");
    assert!(!ended[0].contains("changed_"), "{}", ended[0]);
    let words = ended[1].split(' ').filter(|w| w.starts_with("changed_"));
    assert_eq!(words.collect::<Vec<_>>().join(" "), expect);
}

fn body(fields: &str, system: &str, later: &str) -> String {
    let said = r#"{"role":"user","content":"hi"}"#;
    format!(
        r#"{{"model":"m",{fields}"messages":[{{"role":"system","content":"{system}"}},{said}{later}]}}"#
    )
}

#[tokio::test(start_paused = true)]
async fn rc_079_a_changed_prompt_is_told_with_its_message_and_role() {
    let clock = |time: &str| body("", &format!("Now: {time}. You help sailors."), "");
    check(
        &clock("2031-05-04 09:15:02"),
        &clock("2031-05-04 09:15:41"),
        "changed_part=\"system\" changed_message=0 changed_byte=0",
    )
    .await;
    // Behind a long text that is the same, it is the block that differs.
    let late = |time: &str| {
        body(
            "",
            &format!("{}{time}", "You help sailors. ".repeat(600)),
            "",
        )
    };
    check(
        &late("09:15:02"),
        &late("09:15:41"),
        "changed_part=\"system\" changed_message=0 changed_byte=10240",
    )
    .await;
    let other_user = body("", "You help.", "").replace("hi", "ho");
    check(
        &body("", "You help.", ""),
        &other_user,
        "changed_part=\"user\" changed_message=1 changed_byte=0",
    )
    .await;
    let tools = |name: &str| {
        let tool = format!(r#""tools":[{{"type":"function","function":{{"name":"{name}"}}}}],"#);
        body(&tool, "You help.", "")
    };
    check(
        &tools("f"),
        &tools("g"),
        "changed_part=\"tools\" changed_byte=0",
    )
    .await;
    let later = r#",{"role":"assistant","content":"ok"},{"role":"user","content":"more"}"#;
    check(
        &body("", "You help.", ""),
        &body("", "You help.", later),
        "",
    )
    .await;
}
