//! Bodies that were worth keeping, replayed through what reads bytes from outside: nothing panics, and how they are cut means nothing.

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use chat_wire::chunk::{self, Places};
    use chat_wire::families::Families;
    use chat_wire::reshape::{Change, FieldName, Plan, Reshaper, Shown};
    use chat_wire::scan;
    use chat_wire::sse::Decoder;

    fn decoded(body: &[u8], at: usize) -> Option<Vec<String>> {
        let mut decoder = Decoder::new();
        let mut data = Vec::new();
        for part in [&body[..at], &body[at..]] {
            data.extend(decoder.push(part).ok()?.into_iter().map(|event| event.data));
        }
        Some(data)
    }

    /// The stream of these events, reshaped as for this family.
    fn reshaped(data: &[String], family: &str, shown: Shown) -> Vec<u8> {
        let families = Families::built_in().unwrap();
        let mut reshaper = Reshaper::new(Plan {
            grammar: families.named(family).unwrap().grammar.clone(),
            thinking: None,
            engine_splits: false,
            shown,
            field: FieldName::Both,
        })
        .watching();
        let mut out = BytesMut::new();
        let mut places = Places::default();
        for one in data {
            let one = Bytes::from(one.clone());
            let Ok(mut seen) = chunk::scan_placed(&one, &mut places) else {
                continue;
            };
            match reshaper.event(&one, &mut seen, &places).change {
                Change::Same => out.extend_from_slice(&one),
                Change::Spliced => {
                    let mut event = BytesMut::new();
                    reshaper.write(&one, &mut event);
                    chunk::scan(&event).expect("a reshaped event is JSON again");
                    out.extend_from_slice(&event);
                }
                Change::Nothing => {}
            }
        }
        out.extend_from_slice(&reshaper.flush().unwrap_or_default());
        out.to_vec()
    }

    #[test]
    fn kept_bodies_replay_alike_however_they_are_cut() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
        let mut count = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let body = std::fs::read(&path).unwrap();
            let _ = scan::chat(&body, &[]);
            let _ = chunk::scan(&body);
            let whole = decoded(&body, 0);
            for at in 0..=body.len() {
                assert_eq!(decoded(&body, at), whole, "{} cut at {at}", path.display());
            }
            let data = whole.unwrap_or_default();
            for family in ["qwen3", "gpt-oss", "none"] {
                for shown in [Shown::Field, Shown::Hidden, Shown::Summary] {
                    let once = reshaped(&data, family, shown);
                    assert_eq!(reshaped(&data, family, shown), once, "{}", path.display());
                }
            }
            count += 1;
        }
        assert!(count >= 10, "{count} bodies");
    }
}
