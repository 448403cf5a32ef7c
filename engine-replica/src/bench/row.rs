//! What is said of one prompt length with one number of streams.

use serde::Serialize;

use super::measure::Run;
use super::report::Header;

/// One row; a promise to scripts that read `--json`. Times in seconds, rates in tokens a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row<'a> {
    pub(super) model: &'a str,
    pub(super) prompt_tokens: u32,
    pub(super) streams: u32,
    pub(super) decode_tokens: u32,
    pub(super) runs: u32,
    /// Prompt tokens of all streams over the time until the last of them had its first token.
    pub(super) prefill_tokens_per_second: f64,
    pub(super) decode_tokens_per_second_per_stream: f64,
    pub(super) decode_tokens_per_second: f64,
    /// Median over streams and runs.
    pub(super) cold_ttft_seconds: f64,
    pub(super) warm_ttft_seconds: f64,
    /// Prompt tokens reused in the warm pass, of all streams.
    pub(super) warm_cached_tokens: u64,
}

impl<'a> Row<'a> {
    /// `runs` is not empty.
    pub(super) fn of_medians(
        header: &Header<'a>,
        prompt_tokens: u32,
        streams: u32,
        runs: &[Run],
    ) -> Row<'a> {
        let prompts = f64::from(prompt_tokens) * f64::from(streams);
        let prefill = runs
            .iter()
            .map(|run| prompts / run.cold.iter().copied().fold(f64::MIN_POSITIVE, f64::max));
        let decode = median(runs.iter().map(|run| run.decode).collect());
        Row {
            model: header.model,
            prompt_tokens,
            streams,
            decode_tokens: header.decode_tokens,
            runs: header.runs,
            prefill_tokens_per_second: rounded(median(prefill.collect())),
            decode_tokens_per_second_per_stream: rounded(decode / f64::from(streams)),
            decode_tokens_per_second: rounded(decode),
            cold_ttft_seconds: rounded(median(
                runs.iter().flat_map(|run| run.cold.clone()).collect(),
            )),
            warm_ttft_seconds: rounded(median(
                runs.iter().flat_map(|run| run.warm.clone()).collect(),
            )),
            warm_cached_tokens: runs.last().map_or(0, |run| run.warm_cached_tokens),
        }
    }
}

/// To a tenth of a millisecond, or a ten-thousandth of a token a second: what lies below is noise.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// The middle one, or the mean of the middle two; 0 of none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.get(middle) {
        None => 0.0,
        Some(&upper) if values.len() % 2 == 1 => upper,
        Some(&upper) => f64::midpoint(values[middle - 1], upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(vec![]), 0.0);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn a_row_says_the_medians_of_its_runs() {
        let run = |cold: f64, decode| Run {
            cold: vec![cold / 2.0, cold],
            warm: vec![0.1, 0.2],
            warm_cached_tokens: 96,
            decode,
        };
        let header = Header {
            model: "m",
            runs: 3,
            decode_tokens: 8,
        };
        let row = Row::of_medians(
            &header,
            100,
            2,
            &[run(1.0, 10.0), run(2.0, 30.0), run(4.0, 20.0)],
        );
        assert_eq!(row.prefill_tokens_per_second, 100.0);
        assert_eq!(row.decode_tokens_per_second, 20.0);
        assert_eq!(row.decode_tokens_per_second_per_stream, 10.0);
        assert_eq!(row.cold_ttft_seconds, 1.5);
        assert_eq!(row.warm_ttft_seconds, 0.15);
        assert_eq!(row.warm_cached_tokens, 96);
    }
}
