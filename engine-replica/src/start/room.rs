//! How many tokens fit.

use replica_core::BLOCK_TOKENS;

use crate::cli::EngineArgs;
use crate::model::config::ModelConfig;

/// KV memory where nothing was asked for, in MiB; less where all running requests at full context need less.
const KV_MEMORY_DEFAULT_MIB: u32 = 1024;
/// Bytes of one element of K or V: f32.
const KV_ELEMENT_BYTES: usize = 4;

/// Wishes that do not fit the model or each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoomError {
    /// More context than the model was made for.
    #[error(
        "--context-max {asked} is more than the {made_for} tokens that this model was made for"
    )]
    BeyondModel {
        /// As asked for, in tokens.
        asked: usize,
        /// The model's own, in tokens.
        made_for: usize,
    },
    /// More context than KV.
    #[error(
        "--context-max {asked} does not fit the KV cache of {kv_tokens} tokens; raise --kv-memory or --kv-tokens"
    )]
    BeyondKv {
        /// As asked for, in tokens.
        asked: usize,
        /// Room for so many.
        kv_tokens: usize,
    },
    /// Not one block.
    #[error(
        "the KV cache would hold {kv_tokens} tokens and needs {BLOCK_TOKENS} at least; raise --kv-memory or --kv-tokens"
    )]
    NoBlock {
        /// Room for so many.
        kv_tokens: usize,
    },
}

/// What fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Tokens that prompt and answer share.
    pub(super) context_max: usize,
    /// What sets `context_max`, for people.
    pub(super) context_why: &'static str,
    pub(super) kv_blocks: usize,
    pub(super) kv_bytes: usize,
}

impl Room {
    pub(super) fn of(config: &ModelConfig, args: &EngineArgs) -> Result<Room, RoomError> {
        let token_bytes = 2 * KV_ELEMENT_BYTES * config.layers * config.kv_heads * config.head_dim;
        let asked = args.context_max.map(|tokens| tokens as usize);
        if let Some(asked) = asked
            && asked > config.context_max
        {
            return Err(RoomError::BeyondModel {
                asked,
                made_for: config.context_max,
            });
        }
        let wanted = asked.unwrap_or(config.context_max);
        let in_memory = |mib: u32| ((mib as usize) << 20) / token_bytes.max(1);
        let kv_tokens = match (args.kv_tokens, args.kv_memory) {
            (Some(tokens), _) => tokens as usize,
            (None, Some(mib)) => in_memory(mib),
            (None, None) => {
                let all = wanted
                    .next_multiple_of(BLOCK_TOKENS)
                    .saturating_mul(args.max_running as usize);
                in_memory(KV_MEMORY_DEFAULT_MIB).min(all)
            }
        };
        let kv_blocks = kv_tokens / BLOCK_TOKENS;
        if kv_blocks == 0 {
            return Err(RoomError::NoBlock { kv_tokens });
        }
        let kv_tokens = kv_blocks * BLOCK_TOKENS;
        if let Some(asked) = asked
            && asked > kv_tokens
        {
            return Err(RoomError::BeyondKv { asked, kv_tokens });
        }
        let context_why = match asked {
            Some(_) => "as asked for",
            None if kv_tokens < config.context_max => "all that the KV cache holds",
            None => "all that the model was made for",
        };
        Ok(Room {
            context_max: wanted.min(kv_tokens),
            context_why,
            kv_blocks,
            kv_bytes: kv_tokens * token_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::model::config::{Family, RopeStyle};
    use clap::Parser;

    /// A model with a context of 100 tokens and 1 KiB of KV a token.
    fn config() -> ModelConfig {
        ModelConfig {
            family: Family::Llama,
            vocab: 8,
            hidden: 64,
            layers: 2,
            heads: 4,
            kv_heads: 2,
            head_dim: 32,
            intermediate: 64,
            context_max: 100,
            rope_theta: 1e4,
            rope_style: RopeStyle::Half,
            rms_eps: 1e-5,
            tied_output: true,
            mixture: None,
        }
    }

    #[track_caller]
    fn check(flags: &str, expect: Result<(usize, usize), &str>) {
        let line = format!("engine-replica serve --model m {flags}");
        let Command::Serve(args) = Cli::parse_from(line.split_whitespace()).command else {
            panic!("not serve")
        };
        let got = Room::of(&config(), &args.engine).map(|room| (room.context_max, room.kv_blocks));
        assert_eq!(
            got.map_err(|error| error.to_string()),
            expect.map_err(str::to_owned),
            "{flags}"
        );
    }

    #[test]
    fn context_and_kv_follow_the_flags_and_the_model() {
        check("", Ok((100, 16 * 7)));
        check("--max-running 2", Ok((100, 2 * 7)));
        check("--kv-memory 1", Ok((100, 64)));
        check("--kv-tokens 47", Ok((32, 2)));
        check("--context-max 20 --max-running 1", Ok((20, 2)));
        check("--context-max 20 --kv-tokens 32", Ok((20, 2)));
    }

    #[test]
    fn wishes_that_do_not_fit_are_refused_with_the_numbers() {
        check(
            "--context-max 101",
            Err("--context-max 101 is more than the 100 tokens that this model was made for"),
        );
        check(
            "--context-max 90 --kv-tokens 64",
            Err(
                "--context-max 90 does not fit the KV cache of 64 tokens; raise --kv-memory or --kv-tokens",
            ),
        );
        check(
            "--kv-tokens 15",
            Err(
                "the KV cache would hold 15 tokens and needs 16 at least; raise --kv-memory or --kv-tokens",
            ),
        );
    }
}
