//! Log probabilities in OpenAI's shape.

use chat_wire::reply::{Logprobs, TokenLogprob, TopLogprob};
use replica_core::text_stream::TokenText;

use crate::engine::job::TokenInfo;

/// JSON has no minus infinity; this is the number that OpenAI writes for a token that cannot be.
const LOGPROB_MIN: f32 = -9999.0;

/// One entry for each token.
pub(super) fn logprobs(tokens: &[TokenInfo], vocabulary: &dyn TokenText) -> Logprobs {
    let content = tokens
        .iter()
        .map(|token| TokenLogprob {
            token: text(vocabulary, token.id),
            logprob: finite(token.logprob.unwrap_or(LOGPROB_MIN)),
            bytes: vocabulary.bytes(token.id).to_vec(),
            top_logprobs: token
                .top
                .iter()
                .map(|&(id, logprob)| TopLogprob {
                    token: text(vocabulary, id),
                    logprob: finite(logprob),
                    bytes: vocabulary.bytes(id).to_vec(),
                })
                .collect(),
        })
        .collect();
    Logprobs { content }
}

fn text(vocabulary: &dyn TokenText, id: u32) -> String {
    String::from_utf8_lossy(vocabulary.bytes(id)).into_owned()
}

fn finite(logprob: f32) -> f32 {
    if logprob.is_finite() {
        logprob.max(LOGPROB_MIN)
    } else {
        LOGPROB_MIN
    }
}
