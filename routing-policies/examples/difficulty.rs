//! Features of turns, for the training tool, and their scores, to compare with what it works out itself: JSON lines with `text` come
//! in, one line about the features and then a JSON line for each turn go out. With a weights file's name, scores come with them.
//! `time` as the only argument prints what a score takes.
#![expect(clippy::print_stdout, reason = "this is a tool")]

use std::hint::black_box;
use std::io::{BufRead as _, Write as _};
use std::time::Instant;

use routing_policies::difficulty::{Difficulty, Features, Piece, Turn, fingerprint, names};

/// How often each length is timed.
const ROUNDS: usize = 2_001;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("time") {
        time();
        return Ok(());
    }
    let weights = argument.map(std::fs::read).transpose()?;
    let difficulty = weights
        .map(|bytes| Difficulty::from_bytes(&bytes))
        .transpose()?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let about = serde_json::json!({"names": names(), "fingerprint": fingerprint()});
    writeln!(out, "{about}")?;
    for line in std::io::stdin().lock().lines() {
        let row: serde_json::Value = serde_json::from_str(&line?)?;
        let text = row["text"].as_str().unwrap_or_default();
        let found = Features::of(text);
        let turn = Turn { text, before: "" };
        let score = difficulty
            .as_ref()
            .map(|difficulty| difficulty.score(&turn));
        let (words, runs) = (pieces(&found.words), pieces(&found.runs));
        let features =
            serde_json::json!({"dense": found.dense, "words": words, "runs": runs, "score": score});
        writeln!(out, "{features}")?;
    }
    Ok(())
}

/// Each piece as its number; `-1 - number` where it lies between the turn's ends.
fn pieces(pieces: &[Piece]) -> Vec<i64> {
    let number = |piece: &Piece| {
        if piece.edge {
            i64::from(piece.id)
        } else {
            -1 - i64::from(piece.id)
        }
    };
    pieces.iter().map(number).collect()
}

#[expect(clippy::disallowed_methods, reason = "this is a tool that measures")]
fn time() {
    let english = "Summarise the report below in two sentences, then say how many of its 14 figures rose by more than 3.5 % a year. ";
    let other = "Сколько из 14 чисел выросло больше чем на 3,5 %? 请证明这个结论，并写一个函数。 ";
    for (name, text) in [("English", english), ("Russian and Chinese", other)] {
        for bytes in [200, 2_048, 65_536, 1 << 20] {
            let text = text.repeat(bytes / text.len() + 1);
            let end = (0..=bytes).rev().find(|at| text.is_char_boundary(*at));
            let text = &text[..end.unwrap_or(0)];
            let mut took: Vec<u128> = (0..ROUNDS)
                .map(|_| {
                    let begun = Instant::now();
                    black_box(Difficulty::built_in().score(&Turn {
                        text: black_box(text),
                        before: "",
                    }));
                    begun.elapsed().as_nanos()
                })
                .collect();
            took.sort_unstable();
            println!(
                "{name}, {bytes} bytes: median {} ns, p99 {} ns",
                took[ROUNDS / 2],
                took[ROUNDS * 99 / 100]
            );
        }
    }
}
