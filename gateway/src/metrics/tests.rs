use std::fmt::Write as _;

use super::*;

/// The catalogue as a page, made from the registry itself.
fn catalogue() -> String {
    let metrics = Metrics::new();
    let _replica = metrics.replica("r");
    metrics.session_source("s");
    metrics.failure("c");
    metrics.tls_reload(true);
    metrics.policy_reload(true);
    metrics.lane(&"l".into(), LaneReason::FirstLane);
    let mut page = String::from(
        "# Metrics of the gateway\n\nServed at `/metrics` on the admin address. Written by the test `metrics_md_is_current`;\nrefresh with `UPDATE_EXPECT=1 cargo test -p gateway metrics_md_is_current`.\n\n| name | kind | labels | meaning |\n|---|---|---|---|\n",
    );
    for family in metrics.registry.gather() {
        let metric = &family.get_metric()[0];
        let labels: Vec<_> = metric
            .get_label()
            .iter()
            .map(prometheus::proto::LabelPair::name)
            .collect();
        let kind = format!("{:?}", family.get_field_type()).to_lowercase();
        let (name, help) = (family.name(), family.help());
        writeln!(
            page,
            "| `{name}` | {kind} | {} | {help} |",
            labels.join(", ")
        )
        .unwrap();
    }
    page
}

#[test]
fn metrics_md_is_current() {
    expect_test::expect_file!["../../METRICS.md"].assert_eq(&catalogue());
}

#[test]
fn outcomes_and_results_index_their_own_series() {
    for (index, outcome) in Outcome::ALL.into_iter().enumerate() {
        assert_eq!(outcome as usize, index);
    }
    for (index, result) in AttemptResult::ALL.into_iter().enumerate() {
        assert_eq!(result as usize, index);
    }
}
