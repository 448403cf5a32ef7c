//! The size of a prefix cache as vLLM tells it: not in `/health`, but as labels of a series in `/metrics`.

use crate::metrics::VLLM_CACHE_CONFIG;

/// What the text of a replica's `/metrics` says of its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheSize {
    /// Tokens that its caches hold together; none where caching is off.
    Tokens(u64),
    /// The series is there, but not yet the size: the cache is still being made.
    NotYet,
    /// No such series: another engine.
    Nothing,
}

/// Reads the text of a replica's `/metrics`. With data parallelism there is one series per engine.
pub(super) fn cache_size(metrics: &str) -> CacheSize {
    let series = metrics
        .lines()
        .filter_map(|line| line.strip_prefix(VLLM_CACHE_CONFIG)?.strip_prefix('{'));
    series.fold(CacheSize::Nothing, |sum, labels| {
        match (sum, size(labels)) {
            (CacheSize::NotYet, _) | (_, None) => CacheSize::NotYet,
            (CacheSize::Nothing, Some(tokens)) => CacheSize::Tokens(tokens),
            (CacheSize::Tokens(sum), Some(tokens)) => CacheSize::Tokens(sum.saturating_add(tokens)),
        }
    })
}

/// The labels are the fields of vLLM's `CacheConfig` as Python prints them. `kv_cache_size_tokens` came late and is the size itself;
/// blocks times their size is the same where all layers are alike, and means nothing in models that mix kinds of attention, whose groups
/// have blocks of different sizes.
fn size(labels: &str) -> Option<u64> {
    let (mut tokens, mut blocks, mut block_tokens) = (None, None, None);
    let mut rest = labels;
    // Ends with the labels: each turn takes one off.
    while let Some((name, value)) = rest.split_once("=\"") {
        let (value, after) = value.split_at(end_of_value(value)?);
        let number = || value.parse::<u64>().ok().filter(|number| *number > 0);
        match name.trim_start_matches([',', ' ']) {
            "kv_cache_size_tokens" => tokens = number(),
            "num_gpu_blocks" => blocks = number(),
            "block_size" => block_tokens = number(),
            "enable_prefix_caching" if value.eq_ignore_ascii_case("false") => return Some(0),
            _ => {}
        }
        rest = after.strip_prefix('"')?;
        if rest.starts_with('}') {
            break;
        }
    }
    tokens.or_else(|| Some(blocks?.saturating_mul(block_tokens?)))
}

/// Where the quote stands that ends a label's value; a backslash guards the character after it.
fn end_of_value(value: &str) -> Option<usize> {
    let mut guarded = false;
    value.char_indices().find_map(|(at, c)| {
        let ends = c == '"' && !guarded;
        guarded = c == '\\' && !guarded;
        ends.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(metrics: &str, size: CacheSize) {
        assert_eq!(cache_size(metrics), size, "{metrics}");
    }

    #[test]
    fn a_cache_is_as_large_as_its_series_says() {
        use CacheSize::{NotYet, Nothing, Tokens};
        check("", Nothing);
        check("vllm:cache_config_info 1", Nothing);
        let other = "vllm:num_requests_running{num_gpu_blocks=\"4\",block_size=\"16\"} 1";
        check(other, Nothing);
        // As vLLM 0.10 prints it.
        let one = "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",calculate_kv_scales=\"False\",cpu_offload_gb=\"0\",enable_prefix_caching=\"True\",engine=\"0\",gpu_memory_utilization=\"0.9\",is_attention_free=\"False\",num_cpu_blocks=\"None\",num_gpu_blocks=\"27000\",num_gpu_blocks_override=\"None\",sliding_window=\"None\",swap_space_bytes=\"4294967296.0\"} 1.0\n";
        check(one, Tokens(432_000));
        check(&format!("{one}{one}"), Tokens(864_000));
        check(&one.replace("=\"True\"", "=\"False\""), Tokens(0));
        let guarded = one.replace("auto", "a\\\"b,num_gpu_blocks=\\\"1");
        check(&guarded, Tokens(432_000));
        let much = one.replace("27000", "18446744073709551615");
        check(&much, Tokens(u64::MAX));
        // A model that mixes kinds of attention: blocks of 8 tokens are those of its smallest group.
        let mixed = "vllm:cache_config_info{block_size=\"8\",enable_prefix_caching=\"True\",kv_cache_max_concurrency=\"1.77\",kv_cache_size_tokens=\"463459\",num_gpu_blocks=\"320\"} 1.0\n";
        check(mixed, Tokens(463_459));
        check(&mixed.replace("463459", "None"), Tokens(2_560));
        // Before the cache is made there is no number yet.
        let early = one.replace("27000", "None");
        check(&early, NotYet);
        check(&one.replace("27000", "0"), NotYet);
        check(&format!("{one}{early}"), NotYet);
        check("vllm:cache_config_info{block_size=\"16", NotYet);
        check("vllm:cache_config_info{block_size=\"16\"", NotYet);
    }
}
