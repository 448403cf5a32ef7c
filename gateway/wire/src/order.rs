//! A JSON text with the keys of its objects in one order and no white space, so that two clients who describe one tool alike send one
//! text. Numbers and strings keep the bytes that they are written with.

use crate::json::ScanError;
use crate::json::cursor::Cursor;

/// The key whose value has names of the client's own: a schema's properties. Models write arguments in their order.
const PROPERTIES: &[u8] = b"properties";

/// `json` with the keys of each object in the order of their bytes; those of a schema's `properties` keep theirs unless `properties_too`.
/// The elements of arrays stay where they are.
///
/// `None` where it cannot be told that the meaning stays: `json` is no JSON, or an object has a key with an escape or a key twice.
#[must_use]
pub fn in_order(json: &[u8], properties_too: bool) -> Option<Vec<u8>> {
    let mut writer = Writer {
        properties_too,
        doubtful: false,
    };
    let mut cursor = Cursor::new(json);
    let mut out = Vec::with_capacity(json.len());
    writer.value(&mut cursor, json, &mut out, false).ok()?;
    cursor.end().ok()?;
    (!writer.doubtful).then_some(out)
}

struct Writer {
    properties_too: bool,
    doubtful: bool,
}

impl Writer {
    /// Writes the next value; `names` says whether its keys, where it is an object, are names of the client's own.
    fn value(
        &mut self,
        cursor: &mut Cursor<'_>,
        json: &[u8],
        out: &mut Vec<u8>,
        names: bool,
    ) -> Result<(), ScanError> {
        match cursor.peek() {
            Some(b'{') => self.object(cursor, json, out, names),
            Some(b'[') => {
                out.push(b'[');
                let mut first = true;
                cursor.array(|cursor| {
                    if !std::mem::take(&mut first) {
                        out.push(b',');
                    }
                    self.value(cursor, json, out, false)
                })?;
                out.push(b']');
                Ok(())
            }
            _ => {
                let span = cursor.value()?;
                out.extend_from_slice(&json[span]);
                Ok(())
            }
        }
    }

    fn object(
        &mut self,
        cursor: &mut Cursor<'_>,
        json: &[u8],
        out: &mut Vec<u8>,
        names: bool,
    ) -> Result<(), ScanError> {
        let mut members: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        cursor.object(|cursor, key| {
            self.doubtful |= key.escaped;
            let mut value = Vec::new();
            // Below a schema's `properties` each value is a schema, whatever its name.
            let below = key.raw == PROPERTIES && !names;
            self.value(cursor, json, &mut value, below)?;
            members.push((key.raw.to_vec(), value));
            Ok(())
        })?;
        let mut keys: Vec<&[u8]> = members.iter().map(|(key, _)| &key[..]).collect();
        keys.sort_unstable();
        self.doubtful |= keys.windows(2).any(|pair| pair[0] == pair[1]);
        if !names || self.properties_too {
            members.sort();
        }
        out.push(b'{');
        for (place, (key, value)) in members.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(key);
            out.extend_from_slice(b"\":");
            out.extend_from_slice(value);
        }
        out.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Without and with the names of properties in order.
    #[track_caller]
    fn check(json: &str, expect: Option<[&str; 2]>) {
        let text = |too| in_order(json.as_bytes(), too).map(|out| String::from_utf8(out).unwrap());
        let found = text(false).zip(text(true));
        let expect = expect.map(|[kept, sorted]| (kept.to_owned(), sorted.to_owned()));
        assert_eq!(found, expect, "{json}");
    }

    #[test]
    fn keys_come_in_one_order_and_names_of_properties_stay() {
        // RC-081
        let one =
            r#"{"type":"object","properties":{"port":{"type":"string"}},"required":["port"]}"#;
        let other = r#"{ "required": ["port"], "type": "object", "properties": { "port": { "type": "string" } } }"#;
        let same =
            r#"{"properties":{"port":{"type":"string"}},"required":["port"],"type":"object"}"#;
        check(one, Some([same; 2]));
        check(other, Some([same; 2]));
        // RC-082
        check(
            r#"[{"properties":{"zulu":{"b":1,"a":2},"alpha":1.50e1},"b":[2,1]}]"#,
            Some([
                r#"[{"b":[2,1],"properties":{"zulu":{"a":2,"b":1},"alpha":1.50e1}}]"#,
                r#"[{"b":[2,1],"properties":{"alpha":1.50e1,"zulu":{"a":2,"b":1}}}]"#,
            ]),
        );
        // A property may be called `properties`; what lies below it is a schema.
        check(
            r#"{"properties":{"properties":{"z":1,"a":2}}}"#,
            Some([r#"{"properties":{"properties":{"a":2,"z":1}}}"#; 2]),
        );
        check(" null ", Some(["null"; 2]));
        check("{}", Some(["{}"; 2]));
    }

    #[test]
    fn what_may_change_its_meaning_is_left_alone() {
        check(r#"{"b":1,"a":2,"b":3}"#, None);
        check(r#"{"\u0061":1,"a":2}"#, None);
        check(r#"{"a":1"#, None);
        check("{} {}", None);
        check("", None);
    }

    proptest! {
        #[test]
        fn the_value_stays_and_twice_is_once(json in r#"(\{"a":|\{"b":|,"c":|,"properties":|\{|\}|\[|\]|,|1|"x"|null| ){0,14}"#, too: bool) {
            if let Some(out) = in_order(json.as_bytes(), too) {
                let value = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
                prop_assert_eq!(value(&out), value(json.as_bytes()));
                prop_assert_eq!(in_order(&out, too), Some(out));
            }
        }
    }
}
