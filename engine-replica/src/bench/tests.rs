use serde_json::Value;

use super::*;
use crate::scripted::{self, MANY};

const ROOM: Room = Room {
    context_max: 128,
    kv_tokens: 1024,
    max_running: 4,
    vocab: 26,
};

fn plan(prompt_tokens: &[u32], streams: &[u32], json: bool) -> Plan {
    Plan {
        prompt_tokens: prompt_tokens.to_vec(),
        streams: streams.to_vec(),
        decode_tokens: 8,
        runs: 2,
        json,
    }
}

async fn run(plan: &Plan) -> Result<String, String> {
    let (engine, gate) = scripted::engine(8, 4);
    gate.open(MANY);
    let mut out = Vec::new();
    let done = bench(&engine, plan, ROOM, "alphabet", &mut out).await;
    done.map(|()| String::from_utf8(out).unwrap())
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn each_length_and_number_of_streams_has_a_row() {
    let text = run(&plan(&[32, 64], &[1, 2], true)).await.unwrap();
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let shapes: Vec<(u64, u64)> = rows
        .iter()
        .map(|row| {
            (
                row["prompt_tokens"].as_u64().unwrap(),
                row["streams"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(shapes, [(32, 1), (32, 2), (64, 1), (64, 2)]);
    // All whole blocks but the one of the last token, for each stream.
    let cached: Vec<u64> = rows
        .iter()
        .map(|row| row["warm_cached_tokens"].as_u64().unwrap())
        .collect();
    assert_eq!(cached, [16, 32, 48, 96]);
    assert!(
        rows.iter()
            .all(|row| row["prefill_tokens_per_second"].as_f64().unwrap() > 0.0)
    );
}

#[tokio::test]
async fn the_table_has_a_head_and_a_line_a_row() {
    let text = run(&plan(&[32], &[1, 2], false)).await.unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(
        text.starts_with("alphabet: 8 tokens decoded, medians of 2 runs\n"),
        "{text}"
    );
}

#[tokio::test]
async fn rows_without_room_are_named_before_anything_is_measured() {
    let error = run(&plan(&[32, 121], &[1, 9], true)).await.unwrap_err();
    assert_eq!(
        error,
        "a prompt of 121 tokens and 8 generated ones do not fit the context of 128; lower --prompt-tokens\n\
         9 streams are more than --max-running 4 lets run at a time; raise it"
    );
    let small = Room {
        kv_tokens: 64,
        ..ROOM
    };
    let problems = check(&plan(&[32], &[2], true), small)
        .unwrap_err()
        .to_string();
    assert_eq!(
        problems,
        "2 streams of 40 tokens need KV for 96 tokens and there is room for 64; raise --kv-memory or lower --streams"
    );
}
