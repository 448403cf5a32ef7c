//! What `gateway policy classify` prints.

use super::*;

#[test]
fn classify_judges_texts_and_names_the_lane() {
    let texts = "{\"id\":1,\"text\":\"thanks!\"}\n\n{\"id\":\"b\",\"text\":\"Prove that there are infinitely many primes.\"}\n";
    let lanes = "version = 1\n[[lanes]]\nname = \"usual\"\n[[lanes]]\nname = \"slow\"\n[[rules]]\nname = \"hard\"\nwhen = \"difficulty > 0.4\"\nlane = \"slow\"\n";
    let (folder, [texts, lanes, broken, bad]) = files([
        ("texts.jsonl", texts),
        ("lanes.toml", lanes),
        ("broken.jsonl", "{\"id\":1}"),
        ("bad.bin", "x"),
    ]);
    check(
        folder.path(),
        &["classify", text(&texts)],
        &expect![[r#"
        {"id":1,"difficulty":0.098532,"lane":"no_think"}
        {"id":"b","difficulty":0.623792,"lane":"think"}
    "#]],
    );
    check(
        folder.path(),
        &["classify", text(&texts), "--policy", text(&lanes)],
        &expect![[r#"
            {"id":1,"difficulty":0.098532,"lane":"usual"}
            {"id":"b","difficulty":0.623792,"lane":"slow"}
        "#]],
    );
    check(
        folder.path(),
        &["classify", text(&broken)],
        &expect![[r#"
        failed: broken.jsonl:1: missing field `text` at line 1 column 8; expected an object with `id` and `text`
    "#]],
    );
    check(
        folder.path(),
        &["classify", text(&texts), "--weights", text(&bad)],
        &expect![[r#"
            failed: bad.bin: is no weights file; expected one made by routing-policies/train/train.py
        "#]],
    );
}
