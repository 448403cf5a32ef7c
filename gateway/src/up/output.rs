//! What a replica prints: passed on with its name in front, the last lines kept for when it dies.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// Lines kept: a panic message or a list of problems fits.
const LAST_LINES_MAX: usize = 20;
/// Of a longer line only the start is kept, in characters.
const LINE_CHARS_MAX: usize = 2000;

/// The last lines of one replica, from both of its outputs.
#[derive(Clone, Debug, Default)]
pub(super) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    /// Passes every line on until the output ends.
    pub(super) async fn pass_on(self, name: String, output: impl AsyncRead + Unpin) {
        let mut lines = BufReader::new(output).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            let line = String::from_utf8_lossy(&line);
            let line: String = line.trim_end().chars().take(LINE_CHARS_MAX).collect();
            #[expect(
                clippy::print_stderr,
                reason = "the replica's own output, passed through"
            )]
            {
                eprintln!("[{name}] {line}");
            }
            self.keep(line);
        }
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
