use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::tally::StreamTally;

fn decode(chunks: &[&[u8]]) -> Vec<String> {
    let mut decoder = Decoder::new();
    let mut data = Vec::new();
    for chunk in chunks {
        data.extend(
            decoder
                .push(chunk)
                .unwrap()
                .into_iter()
                .map(|event| event.data),
        );
    }
    data
}

/// Cuts `chunks` into frames, with the incomplete rest.
fn cut(chunks: &[&[u8]]) -> (Vec<Frame>, Bytes) {
    let mut cutter = FrameCutter::new();
    let mut frames = Vec::new();
    for chunk in chunks {
        cutter.push(Bytes::copy_from_slice(chunk));
        while let Some(frame) = cutter.next_frame().unwrap() {
            frames.push(frame);
        }
    }
    (frames, cutter.finish())
}

/// The data of each event, for the chunks as given, for the whole in one chunk, and for every cut of the whole in two.
#[track_caller]
fn check(chunks: &[&[u8]], expect: &[&str]) {
    assert_eq!(decode(chunks), expect);
    let whole = chunks.concat();
    for at in 0..=whole.len() {
        let halves = [&whole[..at], &whole[at..]];
        assert_eq!(decode(&halves), expect, "cut at {at}");
        let (frames, rest) = cut(&halves);
        let mut raw: Vec<u8> = frames.iter().flat_map(|frame| frame.raw.to_vec()).collect();
        raw.extend_from_slice(&rest);
        assert_eq!(raw, whole, "cut at {at}");
        let data: Vec<&[u8]> = frames
            .iter()
            .filter_map(|frame| frame.data.as_deref())
            .collect();
        assert_eq!(
            data,
            expect
                .iter()
                .map(|text| text.as_bytes())
                .collect::<Vec<_>>()
        );
    }
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();
    assert_eq!(decode(&bytes), expect, "byte by byte");
}

#[test]
fn rc_089_crlf_ends_lines() {
    check(
        &[b"data: {\"a\":1}\r\n\r\ndata: {\"a\":2}\r\n\r\n"],
        &["{\"a\":1}", "{\"a\":2}"],
    );
}

#[test]
fn rc_090_crlf_cut_in_two_is_one_line_end() {
    check(
        &[b"data: one\r", b"\ndata: two\r", b"\n\r", b"\n"],
        &["one\ntwo"],
    );
}

#[test]
fn rc_092_exactly_one_space_is_removed() {
    check(
        &[b"data:{\"a\":1}\n\n", b"data:  two\n\n"],
        &["{\"a\":1}", " two"],
    );
}

#[test]
fn rc_093_data_lines_are_joined_by_a_line_feed() {
    check(&[b"data: {\"a\":\ndata: 1}\n\n"], &["{\"a\":\n1}"]);
}

#[test]
fn rc_094_comments_are_no_events() {
    check(
        &[b": ping\n\n", b":\n\n", b":\n", b"data: {\"a\":1}\n\n"],
        &["{\"a\":1}"],
    );
}

#[test]
fn rc_095_events_without_data_are_no_events() {
    check(
        &[
            b"retry: 3000\n\n",
            b"id: 4\n\n",
            b"event: note\n\n",
            b"data: {\"a\":1}\n\n",
        ],
        &["{\"a\":1}"],
    );
}

#[test]
fn rc_098_empty_data_is_passed_over() {
    check(
        &[
            b"data:\n\n",
            b"event: ping\ndata:\n\n",
            b"data: {\"a\":1}\n\n",
        ],
        &["{\"a\":1}"],
    );
    check(&[b"data\n\n", b"data: x\n\n"], &["x"]);
}

#[test]
fn rc_099_only_the_first_byte_order_mark_is_removed() {
    check(
        &[b"\xef\xbb", b"\xbfdata: a\n\n", b"data: \xef\xbb\xbfb\n\n"],
        &["a", "\u{feff}b"],
    );
}

#[test]
fn rc_100_characters_may_be_cut() {
    check(
        &[
            b"data: {\"t\":\"n\xc3",
            b"\xa9 \xe8\x8c",
            b"\xb6 \xf0\x9f\xab",
            b"\x96\"}\n\n",
        ],
        &["{\"t\":\"né 茶 🫖\"}"],
    );
}

#[test]
fn rc_102_done_inside_a_text_does_not_end_the_stream() {
    let events = decode(&[
        b"data: {\"choices\":[{\"delta\":{\"content\":\"Print [DONE] last\"}}]}\n\n",
        b"data: {\"choices\":[{\"delta\":{\"content\":\".\"}}]}\n\n",
        b"data: [DONE]\n\n",
    ]);
    let mut tally = StreamTally::default();
    let done: Vec<bool> = events
        .iter()
        .map(|data| {
            tally.absorb(data.as_bytes()).unwrap();
            tally.done
        })
        .collect();
    assert_eq!(done, [false, false, true]);
}

#[test]
fn an_event_without_its_blank_line_is_held_back() {
    let (frames, rest) = cut(&[b"data: a\n\nda", b"ta: b\n"]);
    assert_eq!(frames.len(), 1);
    assert_eq!(rest, "data: b\n");
    check(&[b"data: a\n\ndata: b\n"], &["a"]);
}

#[test]
fn the_kind_of_an_event_is_kept() {
    let mut decoder = Decoder::new();
    let events = decoder
        .push(b"event: error\ndata: x\n\ndata: y\n\n")
        .unwrap();
    let event = |kind: &str, data: &str| Event {
        kind: kind.to_owned(),
        data: data.to_owned(),
    };
    assert_eq!(events, [event("error", "x"), event("", "y")]);
}

#[test]
fn a_frame_inside_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"data: a\n\ndata: [DONE]\n\n");
    let mut cutter = FrameCutter::new();
    cutter.push(chunk.clone());
    let first = cutter.next_frame().unwrap().unwrap();
    assert_eq!(first.raw.as_ptr(), chunk.as_ptr());
    assert_eq!(first.data.unwrap().as_ptr(), chunk[6..].as_ptr());
    let second = cutter.next_frame().unwrap().unwrap();
    assert_eq!(second.raw.as_ptr(), chunk[9..].as_ptr());
    assert!(second.is_done());
    assert_eq!(cutter.next_frame().unwrap(), None);
    assert!(cutter.finish().is_empty());
}

#[test]
fn an_event_past_the_bound_is_an_error_whether_whole_or_not() {
    let run = |chunks: &[&'static [u8]]| {
        let mut cutter = FrameCutter::with_event_bytes_max(9);
        for chunk in chunks {
            cutter.push(Bytes::from_static(chunk));
            while cutter.next_frame()?.is_some() {}
        }
        Ok(())
    };
    assert_eq!(run(&[b"data: a\n\n", b"data: b\n\n"]), Ok(()));
    assert_eq!(run(&[b"data: ab\n\n"]), Err(SseError::EventTooLong(9)));
    assert_eq!(run(&[b"data:", b" abcde"]), Err(SseError::EventTooLong(9)));
    assert_eq!(
        SseError::EventTooLong(9).to_string(),
        "server-sent event without its blank line after 9 bytes"
    );
}

#[test]
fn what_is_encoded_is_decoded() {
    assert_eq!(encode(b"{\"a\":1}"), "data: {\"a\":1}\n\n");
    assert_eq!(
        encode(b"one\r\ntwo\rthree\n"),
        "data: one\ndata: two\ndata: three\ndata: \n\n"
    );
    assert_eq!(decode(&[&DONE]), ["[DONE]"]);
    assert_eq!(decode(&[&COMMENT_PING]), [""; 0]);
}

/// Pieces of which streams are made, ends of lines and half characters among them.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"data"[..],
        b":",
        b" ",
        b"\n",
        b"\r",
        b"\r\n",
        b"x",
        b"\xc3",
        b"\xa9",
        b"\xef\xbb\xbf",
        b"event",
        b"data: y\n\n",
    ]);
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn chunk_boundaries_mean_nothing(
        stream in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([stream.len()]) {
            chunks.push(&stream[from..cut]);
            from = cut;
        }
        prop_assert_eq!(decode(&chunks), decode(&[&stream]));
        let (frames, rest) = cut(&chunks);
        let mut raw: Vec<u8> = frames.iter().flat_map(|frame| frame.raw.to_vec()).collect();
        raw.extend_from_slice(&rest);
        prop_assert_eq!(raw, stream);
    }

    #[test]
    fn the_decoder_agrees_with_the_standard(stream in stream()) {
        prop_assert_eq!(decode(&[&stream]), by_the_standard(&stream));
    }

    #[test]
    fn any_text_survives_encode_and_decode(text in "[a\n: é]{1,8}") {
        prop_assert_eq!(decode(&[&encode(text.as_bytes())]), [text]);
    }
}

/// The standard's algorithm, written plainly over the whole stream; events of empty data are dropped, as RC-098 asks.
fn by_the_standard(stream: &[u8]) -> Vec<String> {
    let text = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut lines = vec![Vec::new()];
    let mut bytes = text.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' if bytes.peek() == Some(&&b'\n') => {}
            b'\r' | b'\n' => lines.push(Vec::new()),
            _ => lines.last_mut().unwrap().push(*byte),
        }
    }
    lines.pop();
    let (mut events, mut data) = (Vec::new(), Vec::new());
    for line in lines {
        if line.is_empty() {
            data.pop();
            if !data.is_empty() {
                events.push(String::from_utf8_lossy(&data).into_owned());
            }
            data.clear();
            continue;
        }
        let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        if &line[..colon] == b"data" {
            data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            data.push(b'\n');
        }
    }
    events
}
