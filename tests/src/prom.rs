//! Reading Prometheus text back.

/// Sum of all samples of `name` whose labels contain every pair of `labels` (written `key="value"`).
pub fn sum(text: &str, name: &str, labels: &[&str]) -> f64 {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let (series_name, series_labels) = series.split_once('{').unwrap_or((series, ""));
            let fits = series_name == name && labels.iter().all(|l| series_labels.contains(l));
            fits.then(|| value.parse::<f64>().ok()).flatten()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn sums_the_series_that_carry_the_labels() {
        let text = "# HELP a b\na_total{x=\"1\",y=\"2\"} 3\na_total{x=\"1\",y=\"3\"} 4\na_total_more 9\nplain 5\n";
        assert_eq!(sum(text, "a_total", &[]), 7.0);
        assert_eq!(sum(text, "a_total", &["y=\"3\""]), 4.0);
        assert_eq!(sum(text, "plain", &[]), 5.0);
        assert_eq!(sum(text, "absent", &[]), 0.0);
    }
}
