//! How text is cut into words before merging, by the names that GGUF files use.

use tokenizers::normalizers::{NFC, NormalizerWrapper};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;

const KNOWN: &str = "default, gpt-2, llama-bpe, qwen2, smollm";

/// Words with the space before them, numbers, and runs of other characters. A run of white space leaves its last
/// character to the word that follows.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// What llama.cpp does for files whose converter did not know the pre-tokenizer: each pattern cuts further.
const DEFAULT: [&str; 4] = [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"];

/// The parts of a tokenizer that depend on the pre-tokenizer's name.
pub(super) struct Recipe {
    pub(super) pre_tokenizer: PreTokenizerWrapper,
    pub(super) normalizer: Option<NormalizerWrapper>,
    /// A word that is in the vocabulary as a whole is taken without merging.
    pub(super) ignore_merges: bool,
    /// Whether prompts begin with the beginning-of-sequence token where the file does not say.
    pub(super) add_bos: bool,
}

pub(super) fn recipe(name: &str) -> Result<Recipe, String> {
    let plain = |patterns: &[&str]| -> Result<Recipe, String> {
        Ok(Recipe {
            pre_tokenizer: split_by(patterns)?,
            normalizer: None,
            ignore_merges: false,
            add_bos: false,
        })
    };
    match name {
        "gpt-2" => plain(&[GPT2]),
        "default" => plain(&DEFAULT),
        "smollm" => {
            let steps = [
                Digits::new(true).into(),
                ByteLevel::new(false, true, true).into(),
            ];
            Ok(Recipe {
                pre_tokenizer: Sequence::new(steps.into()).into(),
                ..plain(&[])?
            })
        }
        "qwen2" => Ok(Recipe {
            normalizer: Some(NFC.into()),
            ..plain(&[QWEN2])?
        }),
        "llama-bpe" => Ok(Recipe {
            ignore_merges: true,
            add_bos: true,
            ..plain(&[LLAMA3])?
        }),
        other => Err(format!(
            "`tokenizer.ggml.pre` is `{other}`, a way of cutting text that this build does not know; known: {KNOWN}"
        )),
    }
}

fn split_by(patterns: &[&str]) -> Result<PreTokenizerWrapper, String> {
    let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
    for pattern in patterns {
        let pattern = SplitPattern::Regex((*pattern).to_owned());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false)
            .map_err(|error| format!("a built-in pattern does not compile: {error}"))?;
        steps.push(split.into());
    }
    steps.push(ByteLevel::new(false, false, false).into());
    Ok(Sequence::new(steps).into())
}
