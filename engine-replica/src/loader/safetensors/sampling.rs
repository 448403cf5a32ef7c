//! `generation_config.json`: how the model's makers want it sampled.

use serde::Deserialize;

use super::config::OneOrMany;
use crate::loader::GenerationDefaults;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GenerationConfig {
    do_sample: Option<bool>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<u32>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
    max_new_tokens: Option<u32>,
    pub(super) eos_token_id: Option<OneOrMany>,
}

impl GenerationConfig {
    pub(super) fn defaults(&self) -> GenerationDefaults {
        let greedy = self.do_sample == Some(false);
        GenerationDefaults {
            temperature: if greedy { Some(0.0) } else { self.temperature },
            top_p: self.top_p,
            top_k: self.top_k,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            max_new_tokens: self.max_new_tokens,
        }
    }
}
