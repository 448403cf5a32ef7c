//! Rows on paper: a table for people, JSON lines for scripts.

use std::io::{self, Write};

use super::row::Row;

/// What is the same in every row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header<'a> {
    pub(super) model: &'a str,
    pub(super) runs: u32,
    pub(super) decode_tokens: u32,
}

/// Writes each row when it is done, for a long measurement shows its first rows early.
pub(super) struct Reporter<'a> {
    out: &'a mut dyn Write,
    json: bool,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(out: &'a mut dyn Write, json: bool) -> Reporter<'a> {
        Reporter { out, json }
    }

    pub(super) fn begin(&mut self, header: &Header<'_>) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let Header {
            model,
            runs,
            decode_tokens,
        } = header;
        writeln!(
            self.out,
            "{model}: {decode_tokens} tokens decoded, medians of {runs} runs"
        )?;
        writeln!(
            self.out,
            "{:>7} {:>7} {:>13} {:>13} {:>13} {:>10} {:>10}",
            "prompt", "streams", "prefill tok/s", "decode tok/s", "each stream", "cold", "warm"
        )
    }

    pub(super) fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        if self.json {
            serde_json::to_writer(&mut *self.out, row)?;
            writeln!(self.out)?;
        } else {
            writeln!(
                self.out,
                "{:>7} {:>7} {:>13.1} {:>13.1} {:>13.1} {:>9.3}s {:>9.3}s",
                row.prompt_tokens,
                row.streams,
                row.prefill_tokens_per_second,
                row.decode_tokens_per_second,
                row.decode_tokens_per_second_per_stream,
                row.cold_ttft_seconds,
                row.warm_ttft_seconds,
            )?;
        }
        self.out.flush()
    }
}
