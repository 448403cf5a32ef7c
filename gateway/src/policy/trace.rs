//! Reads a recorded trace: JSON lines, plain or gzipped.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use routing_policies::placement::Block;
use routing_policies::replay::{Request, arrivals, halves};
use serde::Deserialize;

use crate::cli::{Half, ReplaySetup};

/// Requests of one trace: at about 1 KB each these take 5 GB.
const REQUESTS_MAX: usize = 5_000_000;
/// Bytes of one line: a million blocks of 16 characters.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// Lines with problems that are told.
const PROBLEMS_MAX: usize = 20;
/// The first bytes of a gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// One line. Traces carry more; what a replay needs is this.
#[derive(Deserialize)]
struct Line {
    /// Milliseconds from the trace's start.
    timestamp: f64,
    /// Tokens of the prompt.
    input_length: u32,
    /// Tokens of the answer.
    output_length: u32,
    session_id: u64,
    /// One number per block of the prompt, each standing for everything up to its block.
    hash_ids: Vec<u64>,
}

/// The requests in order of arrival, as the options say.
pub(super) fn load(setup: &ReplaySetup) -> Result<Vec<Request>, String> {
    let name = setup.trace.display().to_string();
    let file = open(&setup.trace).map_err(|error| format!("{name}: cannot be read: {error}"))?;
    let mut requests = parse(&name, file, setup.block_tokens)?;
    arrivals(&mut requests, setup.jitter_ms / 1_000.0, setup.speed);
    let (first, second) = halves(&requests);
    let requests = match setup.half {
        Half::Whole => return Ok(requests),
        Half::First => first,
        Half::Second => second,
    };
    Ok(requests.to_vec())
}

fn open(path: &Path) -> std::io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(File::open(path)?);
    Ok(if file.fill_buf()?.starts_with(&GZIP_MAGIC) {
        Box::new(BufReader::new(MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    })
}

fn parse(name: &str, mut file: impl BufRead, block_tokens: u32) -> Result<Vec<Request>, String> {
    let (mut requests, mut problems) = (Vec::new(), Vec::new());
    let mut text = Vec::new();
    for number in 1.. {
        text.clear();
        let read = file
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut text)
            .map_err(|error| format!("{name}:{number}: cannot be read: {error}"))?;
        if read == 0 {
            break;
        }
        if text.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Line>(&text) {
            Ok(line) => requests.push(request(line, block_tokens)),
            Err(error) => problems.push(format!(
                "{name}:{number}: {error}; expected an object with `timestamp` (ms), `input_length`, `output_length` (tokens), `session_id` and `hash_ids`"
            )),
        }
        if problems.len() == PROBLEMS_MAX {
            problems.push(format!(
                "{name}: the first {PROBLEMS_MAX} problems; reading stopped"
            ));
            break;
        }
        if requests.len() > REQUESTS_MAX {
            problems.push(format!(
                "{name}: more than {REQUESTS_MAX} requests; replay a part of it"
            ));
            break;
        }
    }
    if requests.is_empty() && problems.is_empty() {
        problems.push(format!("{name}: no requests in it"));
    }
    if problems.is_empty() {
        Ok(requests)
    } else {
        Err(problems.join("\n"))
    }
}

fn request(line: Line, block_tokens: u32) -> Request {
    let block = |key| Block {
        key,
        tokens: block_tokens,
    };
    Request {
        at_s: line.timestamp / 1_000.0,
        prompt_tokens: line.input_length,
        output_tokens: line.output_length,
        session: line.session_id,
        blocks: line.hash_ids.into_iter().map(block).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use expect_test::expect;

    use super::*;

    const LINE: &str = r#"{"timestamp":1500,"input_length":9,"output_length":2,"session_id":7,"turn":1,"hash_ids":[4,5]}"#;

    #[test]
    fn a_line_becomes_a_request() {
        let text = format!("{LINE}\n\n{LINE}");
        let requests = parse("t", text.as_bytes(), 8).unwrap();
        let block = |key| Block { key, tokens: 8 };
        let expected = Request {
            at_s: 1.5,
            prompt_tokens: 9,
            output_tokens: 2,
            session: 7,
            blocks: vec![block(4), block(5)],
        };
        assert_eq!(requests, [expected.clone(), expected]);
    }

    #[test]
    fn a_gzipped_trace_reads_as_a_plain_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl.gz");
        let file = File::create(&path).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        gzip.write_all(LINE.as_bytes()).unwrap();
        gzip.finish().unwrap();
        assert_eq!(parse("t", open(&path).unwrap(), 8).unwrap().len(), 1);
    }

    #[test]
    fn problems_say_where_and_what_is_expected() {
        let said = |text: &str| parse("t.jsonl", text.as_bytes(), 8).unwrap_err();
        expect![[r#"
            t.jsonl:1: missing field `input_length` at line 1 column 15; expected an object with `timestamp` (ms), `input_length`, `output_length` (tokens), `session_id` and `hash_ids`
            t.jsonl:3: expected value at line 1 column 1; expected an object with `timestamp` (ms), `input_length`, `output_length` (tokens), `session_id` and `hash_ids`"#]]
        .assert_eq(&said(&format!("{{\"timestamp\":1}}\n{LINE}\nx\n")));
        assert_eq!(said("\n"), "t.jsonl: no requests in it");
        let many = said(&"x\n".repeat(PROBLEMS_MAX + 5));
        assert_eq!(many.lines().count(), PROBLEMS_MAX + 1);
        assert!(many.ends_with("t.jsonl: the first 20 problems; reading stopped"));
    }
}
