//! Jinja as Hugging Face sets it up for chat templates.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind};

use super::json;

/// Instructions of one rendering, and 64-byte units of the text it makes on the way. A message costs a few hundred,
/// so this is room for ten thousand; it ends a template that goes quadratic within half a second or so.
const FUEL_MAX: u64 = 5_000_000;

/// What `raise_exception` puts under the error that ends the rendering.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Raised(pub(super) String);

pub(super) fn make() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()?;
    environment.set_syntax(syntax);
    environment.set_fuel(Some(FUEL_MAX));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_filter("tojson", json::tojson);
    environment.add_function(
        "raise_exception",
        |message: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message.clone())
                .with_source(Raised(message)))
        },
    );
    Ok(environment)
}
