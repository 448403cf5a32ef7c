//! The `tojson` filter as Python writes it: `", "` and `": "` between, no escapes for HTML, letters as they are.

use minijinja::value::{Kwargs, Value};
use minijinja::{Error, ErrorKind};
use serde_json::Value as Json;

/// Spaces of one level of `indent`.
const INDENT_MAX: usize = 16;

struct Style {
    item_separator: String,
    key_separator: String,
    indent: Option<usize>,
    sort_keys: bool,
    ensure_ascii: bool,
}

/// Jinja's `tojson(indent=None, separators=None, sort_keys=False, ensure_ascii=False)`.
pub(super) fn tojson(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let (item_separator, key_separator) = match separators.as_deref() {
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
        Some([item, key]) => (item.clone(), key.clone()),
        Some(_) => {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "tojson wants two separators",
            ));
        }
    };
    if indent.is_some_and(|indent| indent > INDENT_MAX) {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "tojson indents by at most 16",
        ));
    }
    let style = Style {
        item_separator,
        key_separator,
        indent,
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        ensure_ascii: options
            .get::<Option<bool>>("ensure_ascii")?
            .unwrap_or(false),
    };
    options.assert_all_used()?;
    if value.is_undefined() {
        return Err(Error::new(
            ErrorKind::UndefinedError,
            "tojson was given a value that is not defined",
        ));
    }
    let json = serde_json::to_value(value).map_err(|error| {
        Error::new(
            ErrorKind::BadSerialization,
            "tojson was given a value that JSON cannot hold",
        )
        .with_source(error)
    })?;
    let mut out = String::new();
    write(&json, &style, 0, &mut out);
    Ok(Value::from_safe_string(out))
}

fn write(json: &Json, style: &Style, depth: usize, out: &mut String) {
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) => out.push_str(&json.to_string()),
        Json::String(text) => write_string(text, style, out),
        Json::Array(values) => {
            write_all(
                values.iter(),
                ['[', ']'],
                style,
                depth,
                out,
                |value, out| {
                    write(value, style, depth + 1, out);
                },
            );
        }
        Json::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            if style.sort_keys {
                entries.sort_by_key(|(key, _)| *key);
            }
            write_all(
                entries.into_iter(),
                ['{', '}'],
                style,
                depth,
                out,
                |(key, value), out| {
                    write_string(key, style, out);
                    out.push_str(&style.key_separator);
                    write(value, style, depth + 1, out);
                },
            );
        }
    }
}

fn write_all<T>(
    items: impl ExactSizeIterator<Item = T>,
    brackets: [char; 2],
    style: &Style,
    depth: usize,
    out: &mut String,
    write_item: impl Fn(T, &mut String),
) {
    let line = |depth: usize, out: &mut String| {
        if let Some(indent) = style.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    };
    let empty = items.len() == 0;
    out.push(brackets[0]);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push_str(&style.item_separator);
        }
        line(depth + 1, out);
        write_item(item, out);
    }
    if !empty {
        line(depth, out);
    }
    out.push(brackets[1]);
}

fn write_string(text: &str, style: &Style, out: &mut String) {
    let quoted = Json::String(text.to_owned()).to_string();
    if !style.ensure_ascii {
        // Python escapes DEL no more than this does; both write the short escapes for \b \f \n \r \t.
        out.push_str(&quoted);
        return;
    }
    for c in quoted.chars() {
        if c.is_ascii() || ('\u{FDD0}'..='\u{FDEF}').contains(&c) {
            // Noncharacters stay: one of them may be the guard's mark, which must come out again.
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
}
