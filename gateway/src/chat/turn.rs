//! What the user said last, as text: what the difficulty of a turn is judged by.

use chat_wire::role::Role;
use chat_wire::scan::ChatScan;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// What the user said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// Last; empty where nothing, or nothing in words.
    pub(crate) last: String,
    /// Before that.
    pub(crate) before: String,
}

#[derive(Deserialize)]
struct Message {
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
}

/// The last two messages of the user. Only they are read, so it costs what they are long.
pub(crate) fn said(body: &[u8], scan: &ChatScan) -> Said {
    let of_user = scan.messages.iter().rev();
    let mut texts = of_user
        .filter(|message| message.role == Role::User)
        .map(|message| text(&body[message.span.clone()]));
    Said {
        last: texts.next().unwrap_or_default(),
        before: texts.next().unwrap_or_default(),
    }
}

/// A message's text; its parts are joined by line ends, and what is not text is left out.
fn text(message: &[u8]) -> String {
    match serde_json::from_slice::<Message>(message) {
        Ok(Message {
            content: Some(Content::Text(text)),
        }) => text,
        Ok(Message {
            content: Some(Content::Parts(parts)),
        }) => {
            let texts: Vec<String> = parts.into_iter().filter_map(|part| part.text).collect();
            texts.join("\n")
        }
        Ok(_) | Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use chat_wire::scan;

    use super::*;

    #[track_caller]
    fn check(messages: &str, last: &str, before: &str) {
        let body = format!("{{\"messages\":[{messages}]}}");
        let scan = scan::chat(body.as_bytes(), &[]).unwrap();
        let Said { last: a, before: b } = said(body.as_bytes(), &scan);
        assert_eq!((a.as_str(), b.as_str()), (last, before), "{messages}");
    }

    #[test]
    fn the_last_words_of_the_user_are_found() {
        check("", "", "");
        check(r#"{"role":"user","content":"a\n\u00e9"}"#, "a\né", "");
        check(
            r#"{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"tool","content":"d"}"#,
            "c",
            "a",
        );
        check(
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"b"}]}"#,
            "a\nb",
            "",
        );
        for other in ["null", "7", r#"[{"text":1}]"#, "{}"] {
            check(&format!(r#"{{"role":"user","content":{other}}}"#), "", "");
        }
    }
}
