//! Choosing the next token.

/// How tokens are chosen; every value is already validated.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    /// 0 is greedy.
    pub temperature: f32,
    /// Nucleus: 1.0 keeps all.
    pub top_p: f32,
    /// 0 keeps all.
    pub top_k: u32,
    /// Share of the likeliest token's probability below which a token is cut: 0.0 keeps all.
    pub min_p: f32,
    /// 1.0 changes nothing.
    pub repetition_penalty: f32,
    /// 0.0 changes nothing.
    pub presence_penalty: f32,
    /// 0.0 changes nothing.
    pub frequency_penalty: f32,
    /// Seed of this request's random stream.
    pub seed: u64,
}
