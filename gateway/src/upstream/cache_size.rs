//! The size of a prefix cache as vLLM tells it: not in `/health`, but as labels of a series in `/metrics`.

use crate::metrics::VLLM_CACHE_CONFIG;

/// Tokens that the caches of a replica hold together, from the text of its `/metrics`; none where caching is off. `None` where it does
/// not tell.
pub(super) fn cache_tokens(metrics: &str) -> Option<u64> {
    let sizes = metrics.lines().filter_map(|line| {
        let labels = line.strip_prefix(VLLM_CACHE_CONFIG)?.strip_prefix('{')?;
        size(labels)
    });
    sizes.reduce(u64::saturating_add)
}

fn size(labels: &str) -> Option<u64> {
    let (mut blocks, mut block_tokens) = (None, None);
    let mut rest = labels;
    // Ends with the labels: each turn takes one off.
    while let Some((name, value)) = rest.split_once("=\"") {
        let (value, after) = value.split_at(end_of_value(value)?);
        match name.trim_start_matches([',', ' ']) {
            "num_gpu_blocks" => blocks = value.parse::<u64>().ok(),
            "block_size" => block_tokens = value.parse::<u64>().ok(),
            "enable_prefix_caching" if value == "False" => return Some(0),
            _ => {}
        }
        rest = after.strip_prefix('"')?;
        if rest.starts_with('}') {
            break;
        }
    }
    Some(blocks?.saturating_mul(block_tokens?))
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
    fn check(metrics: &str, tokens: Option<u64>) {
        assert_eq!(cache_tokens(metrics), tokens, "{metrics}");
    }

    #[test]
    fn blocks_times_their_size_is_what_a_cache_holds() {
        check("", None);
        check(
            "vllm:num_requests_running{num_gpu_blocks=\"4\",block_size=\"16\"} 1",
            None,
        );
        let one = "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",enable_prefix_caching=\"True\",engine=\"0\",num_gpu_blocks=\"27000\",num_gpu_blocks_override=\"None\"} 1.0\n";
        check(one, Some(432_000));
        check(&format!("{one}{one}"), Some(864_000));
        check(&one.replace("True", "False"), Some(0));
        // Before the cache is made there is no number yet.
        check(&one.replace("27000", "None"), None);
        check(
            &one.replace("auto", "a\\\"b,num_gpu_blocks=\\\"1"),
            Some(432_000),
        );
        check(
            &one.replace("27000", "18446744073709551615"),
            Some(u64::MAX),
        );
        check("vllm:cache_config_info{block_size=\"16", None);
        check("vllm:cache_config_info{block_size=\"16\"", None);
        check("vllm:cache_config_info 1", None);
    }
}
