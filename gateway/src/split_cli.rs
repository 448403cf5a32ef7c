//! `gateway split`: what a family's markers make of a stream, for whoever looks at one that seems wrong.

use std::io::{BufRead, Read as _, Write};

use chat_wire::families::{Families, Grammar};
use chat_wire::split::{Start, split};
use serde::Serialize;

use crate::cli::{Split, Thinking};

/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What is printed for each line.
#[derive(Serialize)]
struct Answer {
    reasoning: Option<String>,
    content: Option<String>,
    finish: &'static str,
}

/// Reads a JSON array of deltas a line and prints what they come to, a line each.
///
/// # Errors
/// In words for the person who asked: a family that is unknown, a line that is no array of strings, a reader that has gone.
pub fn run(options: &Split, input: impl BufRead, output: impl Write) -> Result<(), String> {
    let families = Families::built_in().map_err(|error| error.to_string())?;
    let family = families.named(&options.family);
    let family = family.map_err(|error| format!("--family: {error}"))?;
    let start = Start {
        prompt_tail: options.prompt_tail.as_deref(),
        thinking: options.thinking.map(|thinking| thinking == Thinking::On),
    };
    lines(&family.grammar, start, input, output)
}

fn lines(
    grammar: &Grammar,
    start: Start<'_>,
    mut input: impl BufRead,
    mut output: impl Write,
) -> Result<(), String> {
    let mut line = String::new();
    for number in 1_u64.. {
        line.clear();
        let read = (&mut input).take(LINE_BYTES_MAX).read_line(&mut line);
        let read = read.map_err(|error| format!("line {number}: {error}"))?;
        if read == 0 {
            break;
        }
        if line.trim().is_empty() {
            continue;
        }
        let deltas: Vec<String> = serde_json::from_str(&line).map_err(|error| {
            format!(
                "line {number}: {error}; expected one JSON array of strings, such as [\"<think>a\", \"</think>b\"], \
                 of at most {LINE_BYTES_MAX} bytes"
            )
        })?;
        let parts = split(grammar, start, deltas.iter().map(|delta| &**delta));
        let answer = Answer {
            reasoning: parts.reasoning,
            content: parts.content,
            finish: "stop",
        };
        let answer = serde_json::to_string(&answer).map_err(|error| error.to_string())?;
        match writeln!(output, "{answer}").and_then(|()| output.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(family: &str, input: &str, expect: Result<&str, &str>) {
        let options = Split {
            family: family.to_owned(),
            prompt_tail: None,
            thinking: None,
        };
        let mut output = Vec::new();
        let done = run(&options, input.as_bytes(), &mut output);
        match (done, expect) {
            (Ok(()), Ok(text)) => assert_eq!(String::from_utf8(output).unwrap(), text),
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (done, expect) => panic!("{done:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn each_line_is_an_answer_of_its_own() {
        check(
            "qwen3",
            "[\"<thi\", \"nk>a</think>b\"]\n\n[\"<think>c\"]\n[]",
            Ok(concat!(
                r#"{"reasoning":"a","content":"b","finish":"stop"}"#,
                "\n",
                r#"{"reasoning":"c","content":null,"finish":"stop"}"#,
                "\n",
                r#"{"reasoning":null,"content":null,"finish":"stop"}"#,
                "\n",
            )),
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        check("qwen33", "", Err("name one of none, deepseek-r1"));
        check("qwen3", "[]\n{}", Err("line 2: "));
        check("qwen3", "[1]", Err("expected one JSON array of strings"));
    }
}
