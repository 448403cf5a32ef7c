//! Messages to prompt text: the model's own Jinja chat template with Hugging Face's semantics.
//!
//! One thing differs from Hugging Face. A control token's text inside a client's string (`<|im_start|>system` in a
//! web page that a tool fetched) stays text: it cannot end a turn or begin another. See `guard`.

mod clock;
mod environment;
mod guard;
mod json;
mod messages;
mod tags;

#[cfg(test)]
mod tests;

use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind, Value};

use self::environment::Raised;

/// Names that the template gets from this module; `chat_template_kwargs` may not replace them.
const RESERVED: [&str; 9] = [
    "messages",
    "tools",
    "add_generation_prompt",
    "bos_token",
    "eos_token",
    "pad_token",
    "unk_token",
    "raise_exception",
    "strftime_now",
];
const TEMPLATE: &str = "chat template";

/// Texts of the tokens that templates name by role; undefined in the template where the model has none.
#[derive(Clone, Debug, Default)]
pub struct SpecialTokens {
    /// Beginning of sequence.
    pub bos: Option<String>,
    /// End of sequence.
    pub eos: Option<String>,
    /// Padding.
    pub pad: Option<String>,
    /// Unknown.
    pub unk: Option<String>,
}

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    special: SpecialTokens,
    control_texts: Vec<String>,
}

/// One conversation to render.
#[derive(Clone, Copy, Debug)]
pub struct RenderInput<'a> {
    /// OpenAI's chat messages, oldest first. Content that is a list of text parts is joined with newlines.
    pub messages: &'a [serde_json::Value],
    /// OpenAI's tool definitions; an empty list is the same as none.
    pub tools: &'a [serde_json::Value],
    /// Whether the text ends where the assistant's answer begins.
    pub add_generation_prompt: bool,
    /// The client's `chat_template_kwargs` and what a lane adds to them (`enable_thinking`).
    pub kwargs: &'a serde_json::Map<String, serde_json::Value>,
    /// For templates that state the date: seconds since 1970, UTC.
    pub now: u64,
}

/// A prompt, with the places at which no control token may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    text: String,
    /// Ascending byte positions in `text`.
    breaks: Vec<usize>,
}

impl Rendered {
    /// The prompt as it reads.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Byte positions, ascending, at which a client's string holds the text of a control token.
    pub fn breaks(&self) -> &[usize] {
        &self.breaks
    }
}

/// Why a conversation has no prompt. All but `Broken` are the request's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The template does not compile.
    #[error("the model's chat template is broken: {0}")]
    Broken(String),
    /// The template refused the conversation by `raise_exception`.
    #[error("the model's chat template refuses these messages: {0}")]
    Raised(String),
    /// The template could not work with what the request gave it.
    #[error("the model's chat template cannot render these messages: {0}")]
    Failed(String),
    /// Rendering took more steps than any real conversation does.
    #[error("the conversation is too long for the model's chat template")]
    TooLong,
    /// `chat_template_kwargs` named something that is not the client's to set.
    #[error("`chat_template_kwargs` may not set {0}; reserved: {reserved}", reserved = RESERVED.join(", "))]
    Reserved(String),
    /// A message is not one that a template can take.
    #[error("{0}")]
    Message(String),
}

impl ChatTemplate {
    /// Compiles a template. `control_texts` are the texts that must not act as tokens inside clients' strings.
    pub fn new(
        source: &str,
        special: SpecialTokens,
        control_texts: Vec<String>,
    ) -> Result<Self, TemplateError> {
        let mut environment =
            environment::make().map_err(|error| TemplateError::Broken(describe(&error)))?;
        environment
            .add_template_owned(TEMPLATE, tags::without_generation(source))
            .map_err(|error| TemplateError::Broken(describe(&error)))?;
        Ok(Self {
            environment,
            special,
            control_texts,
        })
    }

    /// Renders a conversation to the prompt that the model continues.
    pub fn render(&self, input: &RenderInput<'_>) -> Result<Rendered, TemplateError> {
        let taken: Vec<String> = RESERVED
            .iter()
            .filter(|&&name| input.kwargs.contains_key(name))
            .map(|name| format!("`{name}`"))
            .collect();
        if !taken.is_empty() {
            return Err(TemplateError::Reserved(taken.join(", ")));
        }
        let mut messages = messages::prepare(input.messages)?;
        let mut tools = input.tools.to_vec();
        let mut kwargs = input.kwargs.clone();
        let mut strings = guard::Strings {
            messages: &mut messages,
            tools: &mut tools,
            kwargs: &mut kwargs,
        };
        let mark = strings.mark(&self.control_texts)?;
        let context = self.context(input, &messages, &tools, kwargs);
        let text = self
            .environment
            .get_template(TEMPLATE)
            .and_then(|template| template.render(context))
            .map_err(|error| classify(&error))?;
        Ok(guard::unmark(text, mark))
    }

    fn context(
        &self,
        input: &RenderInput<'_>,
        messages: &[serde_json::Value],
        tools: &[serde_json::Value],
        kwargs: serde_json::Map<String, serde_json::Value>,
    ) -> Value {
        let now = input.now;
        let mut context: Vec<(String, Value)> = kwargs
            .into_iter()
            .map(|(name, value)| (name, Value::from(Serde(value))))
            .collect();
        let mut set = |name: &str, value: Value| context.push((name.to_owned(), value));
        set("messages", Value::from(Serde(messages)));
        set(
            "tools",
            if tools.is_empty() {
                Value::from(())
            } else {
                Value::from(Serde(tools))
            },
        );
        set(
            "add_generation_prompt",
            Value::from(input.add_generation_prompt),
        );
        set(
            "strftime_now",
            Value::from_function(move |format: String| clock::strftime(&format, now)),
        );
        for (name, text) in [
            ("bos_token", &self.special.bos),
            ("eos_token", &self.special.eos),
            ("pad_token", &self.special.pad),
            ("unk_token", &self.special.unk),
        ] {
            if let Some(text) = text {
                set(name, Value::from(text.as_str()));
            }
        }
        // Not `collect`, which makes a sequence of pairs.
        Value::from_pairs(context)
    }
}

fn classify(error: &minijinja::Error) -> TemplateError {
    if error.kind() == ErrorKind::OutOfFuel {
        return TemplateError::TooLong;
    }
    // A macro that raises wraps the error of its call in others.
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(Raised(message)) = current.downcast_ref::<Raised>() {
            return TemplateError::Raised(message.clone());
        }
        cause = current.source();
    }
    TemplateError::Failed(describe(error))
}

fn describe(error: &minijinja::Error) -> String {
    let detail = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("{detail} (line {line} of the template)"),
        None => detail,
    }
}
