//! A model's template and tokenizer as the API and the engine see them.

use std::time::{SystemTime, UNIX_EPOCH};

use replica_core::answer_text::{ThinkTokens, Thinking};
use replica_core::text_stream::TokenText;

use crate::api::ChatFormat;
use crate::api::request::ChatRequest;
use crate::failure::{Failure, Problem, ProblemCode};
use crate::template::{ChatTemplate, RenderInput, TemplateError};
use crate::tokenizer::Tokenizer;

/// Template and tokenizer of one checkpoint.
pub(super) struct ModelText {
    template: ChatTemplate,
    tokenizer: Tokenizer,
    think: Option<ThinkTokens>,
}

impl ModelText {
    pub(super) fn new(template: ChatTemplate, tokenizer: Tokenizer) -> ModelText {
        let mark = |text| tokenizer.added_id(text);
        // Only where each is one token by which no text can be encoded: what a model spells out in letters is text.
        let think = mark("<think>").zip(mark("</think>"));
        ModelText {
            template,
            think: think.map(|(open, close)| ThinkTokens { open, close }),
            tokenizer,
        }
    }
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
        self.think.map(|marks| marks.after(prompt, self))
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
