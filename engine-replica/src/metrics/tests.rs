use super::*;
use expect_test::expect_file;

fn metrics(prefix_cache: bool) -> Metrics {
    let constants = Constants {
        model: "lamp-3b",
        name: "replica-0",
        instance: "i",
        device: "cpu",
        prefix_cache,
    };
    Metrics::new(&constants).unwrap()
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines()
        .find(|line| line.starts_with(start))
        .unwrap_or("")
}

#[test]
fn metrics_md_is_current() {
    let metrics = metrics(true);
    metrics.count_refused("queue_full");
    metrics.render(&EngineStats::default()).unwrap();
    let mut page = String::from(
        "# Metrics of engine-replica\n\nServed at `GET /metrics`. Every series carries `model_name` and `engine`. \
         This page is made by `UPDATE_EXPECT=1 cargo test -p engine-replica metrics_md`.\n\n\
         | name | kind | labels | what it says |\n|---|---|---|---|\n",
    );
    for family in metrics.registry.gather() {
        let kind = format!("{:?}", family.get_field_type()).to_lowercase();
        let own = |name: &&str| !["model_name", "engine"].contains(name);
        let labels: Vec<&str> = family.get_metric()[0]
            .get_label()
            .iter()
            .map(|label| label.name())
            .filter(own)
            .collect();
        page.push_str(&format!(
            "| `{}` | {kind} | {} | {} |\n",
            family.name(),
            labels.join(", "),
            family.help()
        ));
    }
    expect_file!["../../METRICS.md"].assert_eq(&page);
}

#[test]
fn counters_follow_the_engine_across_scrapes() {
    let metrics = metrics(true);
    let mut stats = EngineStats {
        running: 2,
        kv_blocks_used: 1,
        kv_blocks_total: 4,
        prompt_tokens: 100,
        cached_tokens: 64,
        ..EngineStats::default()
    };
    metrics.render(&stats).unwrap();
    stats.prompt_tokens = 150;
    stats.cached_tokens = 96;
    let text = metrics.render(&stats).unwrap();
    for (start, expect) in [
        ("vllm:num_requests_running", "2"),
        ("vllm:kv_cache_usage_perc", "0.25"),
        ("vllm:prefix_cache_queries_total", "150"),
        ("vllm:prefix_cache_hits_total", "96"),
        ("vllm:prompt_tokens_cached_total", "96"),
    ] {
        let labels = "{engine=\"0\",model_name=\"lamp-3b\"}";
        assert_eq!(line(&text, start), format!("{start}{labels} {expect}"));
    }
    assert!(text.contains("outcome=\"hit\"} 96\n"), "{text}");
    assert!(text.contains("outcome=\"miss\"} 54\n"), "{text}");
}

#[test]
fn without_a_cache_nothing_is_looked_up() {
    let stats = EngineStats {
        prompt_tokens: 10,
        ..EngineStats::default()
    };
    let text = metrics(false).render(&stats).unwrap();
    assert!(line(&text, "vllm:prefix_cache_queries_total").ends_with(" 0"));
    assert!(line(&text, "vllm:prompt_tokens_total").ends_with(" 10"));
    assert!(line(&text, "replica_prefix_cache_enabled").ends_with(" 0"));
}

#[test]
fn a_prompt_below_one_block_is_counted() {
    let metrics = metrics(true);
    for tokens in [1, 16, 17, 400] {
        metrics.count_prompt(tokens);
    }
    assert_eq!(metrics.below_one_block.get(), 2);
}
