//! A model's template and tokenizer as the API and the engine see them.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use replica_core::answer_text::{ThinkTokens, Thinking};
use replica_core::budget::ThinkWords;
use replica_core::text_stream::TokenText;

use crate::api::ChatFormat;
use crate::api::request::ChatRequest;
use crate::failure::{Failure, Problem, ProblemCode};
use crate::template::{ChatTemplate, RenderInput, TemplateError};
use crate::tokenizer::{EncodeError, Tokenizer};

/// Template and tokenizer of one checkpoint.
pub(super) struct ModelText {
    template: ChatTemplate,
    tokenizer: Tokenizer,
    think: Option<(ThinkTokens, Arc<ThinkWords>)>,
}

/// What a model that nobody taught another ending reads before the mark that its thinking is closed with by force: the
/// line break that its own blocks end with.
pub(super) const CLOSING_PLAIN: &str = "\n";
/// What the model inside was taught.
pub(super) const CLOSING_BUILTIN: &str = "\nTime is up.\n";
/// Between the mark and the answer.
const AFTER_MARK: &str = "\n\n";
/// Said in the place of a mark that comes too early (arXiv 2501.19393).
const PROLONG: &str = "Wait";
/// Opens a call of a tool, in the families that mark reasoning with `<think>`.
const TOOL: &str = "<tool_call>";

impl ModelText {
    /// `closing` is the text before the mark by which thinking is closed by force.
    ///
    /// # Errors
    /// When the tokenizer cannot encode a plain text.
    pub(super) fn new(
        template: ChatTemplate,
        tokenizer: Tokenizer,
        closing: &str,
    ) -> Result<ModelText, EncodeError> {
        let mark = |text| tokenizer.added_id(text);
        // Only where each is one token by which no text can be encoded: what a model spells out in letters is text.
        let marks = mark("<think>").zip(mark("</think>"));
        let think = match marks.map(|(open, close)| ThinkTokens { open, close }) {
            Some(marks) => Some((marks, Arc::new(words(&tokenizer, marks, closing)?))),
            None => None,
        };
        Ok(ModelText {
            template,
            tokenizer,
            think,
        })
    }
}

fn words(
    tokenizer: &Tokenizer,
    marks: ThinkTokens,
    closing: &str,
) -> Result<ThinkWords, EncodeError> {
    let mut tokens = tokenizer.encode_plain(closing)?;
    tokens.push(marks.close);
    tokens.extend(tokenizer.encode_plain(AFTER_MARK)?);
    Ok(ThinkWords {
        closing: tokens,
        prolong: tokenizer.encode_plain(PROLONG)?,
        tool: tokenizer.added_id(TOOL),
    })
}

impl ChatFormat for ModelText {
    fn prompt(&self, request: &ChatRequest) -> Result<Vec<u32>, Failure> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let input = RenderInput {
            messages: &request.messages,
            tools: &[],
            add_generation_prompt: request.add_generation_prompt,
            kwargs: &request.template_kwargs,
            now,
        };
        let rendered = self.template.render(&input).map_err(refusal)?;
        let prompt = self
            .tokenizer
            .encode_rendered(&rendered)
            .map_err(|error| Failure::Engine(error.to_string()))?;
        if prompt.is_empty() {
            return Err(Failure::Template(
                "the messages make an empty prompt; say something".to_owned(),
            ));
        }
        Ok(prompt)
    }

    fn thinking(&self, prompt: &[u32]) -> Option<Thinking> {
        self.think
            .as_ref()
            .map(|(marks, _)| marks.after(prompt, self))
    }

    fn think_words(&self) -> Option<Arc<ThinkWords>> {
        self.think.as_ref().map(|(_, words)| Arc::clone(words))
    }
}

impl TokenText for ModelText {
    fn bytes(&self, token: u32) -> &[u8] {
        self.tokenizer.token_bytes(token)
    }

    fn is_special(&self, token: u32) -> bool {
        self.tokenizer.is_special(token)
    }
}

fn refusal(error: TemplateError) -> Failure {
    let invalid = |param: &str, message: String| {
        Failure::Invalid(vec![Problem {
            param: param.to_owned(),
            message,
            code: ProblemCode::InvalidValue,
        }])
    };
    match error {
        TemplateError::Broken(_) => Failure::Engine(error.to_string()),
        TemplateError::Reserved(_) => invalid("chat_template_kwargs", error.to_string()),
        TemplateError::Message(message) => invalid("messages", message),
        TemplateError::Raised(_) | TemplateError::Failed(_) | TemplateError::TooLong => {
            Failure::Template(error.to_string())
        }
    }
}
