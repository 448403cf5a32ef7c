//! What a replica prints: passed on with its name in front, the last lines kept for when it dies.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// Lines kept: a panic message or a list of problems fits.
const LAST_LINES_MAX: usize = 20;
/// Of a longer line only the start is passed on, in bytes.
const LINE_BYTES_MAX: usize = 4000;

/// The last lines of one replica, from both of its outputs.
#[derive(Clone, Debug, Default)]
pub(super) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    /// Passes every line on until the output ends.
    pub(super) async fn pass_on(self, name: String, output: impl AsyncRead + Unpin) {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        loop {
            let piece = output.fill_buf().await.unwrap_or_default();
            let end = piece.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(piece.len(), |end| end + 1);
            let room = LINE_BYTES_MAX.saturating_sub(line.len());
            line.extend_from_slice(&piece[..end.unwrap_or(used).min(room)]);
            output.consume(used);
            let is_over = used == 0;
            if end.is_some() || (is_over && !line.is_empty()) {
                self.line(&name, &std::mem::take(&mut line));
            }
            if is_over {
                return;
            }
        }
    }

    fn line(&self, name: &str, line: &[u8]) {
        let line = String::from_utf8_lossy(line).trim_end().to_owned();
        #[expect(
            clippy::print_stderr,
            reason = "the replica's own output, passed through"
        )]
        {
            eprintln!("[{name}] {line}");
        }
        self.keep(line);
    }

    fn keep(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The last lines, indented, or a word that there were none.
    pub(super) fn words(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            return "  (it said nothing)".to_owned();
        }
        lines
            .iter()
            .map(|line| format!("  {line}"))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_kept_and_long_ones_cut() {
        let check = async |output: String, first: &str, count: usize| {
            let last = LastLines::default();
            last.clone().pass_on("r".into(), output.as_bytes()).await;
            let words = last.words();
            assert_eq!(
                (words.lines().next(), words.lines().count()),
                (Some(first), count)
            );
        };
        check(String::new(), "  (it said nothing)", 1).await;
        check("one\r\ntwo".into(), "  one", 2).await;
        check((0..25).map(|n| format!("{n}\n")).collect(), "  5", 20).await;
        let cut = format!("  {}", "x".repeat(LINE_BYTES_MAX));
        check(format!("{}\nend\n", "x".repeat(100_000)), &cut, 2).await;
    }
}
