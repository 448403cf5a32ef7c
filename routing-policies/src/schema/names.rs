//! What may name a session: the rules for header names and body paths in a policy file.

use super::spec::quoted;
use crate::session::FORBIDDEN_HEADERS;

/// Most names between dots in one body path; what chat-wire can look for.
const PATH_NAMES_MAX: usize = 8;

/// Longest name of a model, in bytes.
const MODEL_BYTES_MAX: usize = 256;

/// A header's name in lower case, or what is expected in its place.
pub(super) fn header(name: &str) -> Result<String, &'static str> {
    let lower = name.to_ascii_lowercase();
    if FORBIDDEN_HEADERS.contains(&lower.as_str()) {
        return Err(
            "a header that stays the same through a session and is the session's alone (no request or trace id, credential, cookie or client address)",
        );
    }
    let is_token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    if lower.is_empty() || !lower.as_bytes().iter().all(is_token) {
        return Err("a header name (letters, digits and `-`)");
    }
    Ok(lower)
}

/// A path into the body, or what is expected in its place.
pub(super) fn body_path(path: &str) -> Result<String, &'static str> {
    if path.split('.').any(str::is_empty) || path.split('.').count() > PATH_NAMES_MAX {
        return Err("1 to 8 field names joined by dots");
    }
    Ok(path.to_owned())
}

/// A model's name, or what is expected in its place.
pub(super) fn model(name: &str) -> Result<String, &'static str> {
    if name.is_empty() || name.len() > MODEL_BYTES_MAX {
        return Err("a model's name of 1 to 256 bytes");
    }
    Ok(name.to_owned())
}

/// [`model`] in JSON Schema.
pub(super) fn model_schema() -> String {
    format!(r#"{{ "type": "string", "minLength": 1, "maxLength": {MODEL_BYTES_MAX} }}"#)
}

/// [`header`] in JSON Schema.
pub(super) fn header_schema() -> String {
    let forbidden: Vec<String> = FORBIDDEN_HEADERS.iter().map(|name| quoted(name)).collect();
    format!(
        r#"{{ "type": "string", "pattern": {}, "not": {{ "enum": [{}] }} }}"#,
        quoted("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"),
        forbidden.join(", ")
    )
}

/// [`body_path`] in JSON Schema.
pub(super) fn body_path_schema() -> String {
    let more = PATH_NAMES_MAX - 1;
    let pattern = format!(r"^[^.]+(\.[^.]+){{0,{more}}}$");
    format!(r#"{{ "type": "string", "pattern": {} }}"#, quoted(&pattern))
}
