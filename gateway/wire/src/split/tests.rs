use proptest::prelude::*;

use super::*;
use crate::families::Families;

/// The pieces of one kind joined, and everything joined.
fn fields(grammar: &Grammar, start: Start<'_>, parts: &[&str]) -> [String; 3] {
    let mut out: [String; 3] = Default::default();
    let mut sink = |piece: Piece<'_>| {
        let (at, text) = match piece {
            Piece::Reasoning(text) => (0, text),
            Piece::Content(text) => (1, text),
            Piece::Markup(text) => (2, text),
        };
        assert!(!text.is_empty());
        if at < 2 {
            out[at].push_str(text);
        }
        out[2].push_str(text);
    };
    let mut splitter = Splitter::new(grammar, start);
    for part in parts {
        splitter.push(part, &mut sink);
    }
    splitter.finish(&mut sink);
    out
}

/// A name; family, prompt's tail and thinking; deltas; reasoning and content.
type Row = (
    &'static str,
    (&'static str, Option<&'static str>, Option<bool>),
    &'static [&'static str],
    (Option<&'static str>, Option<&'static str>),
);

/// Splits as it came, whole and one letter at a time; all must say the same.
fn check((id, (family, tail, thinking), deltas, (reasoning, content)): &Row) {
    let families = Families::built_in().unwrap();
    let grammar = &families.named(family).unwrap().grammar;
    let start = Start {
        prompt_tail: *tail,
        thinking: *thinking,
    };
    let whole = deltas.concat();
    let letters = whole.split("").filter(|letter| !letter.is_empty());
    let expect = Split {
        reasoning: reasoning.map(str::to_owned),
        content: content.map(str::to_owned),
    };
    assert_eq!(
        split(grammar, start, deltas.iter().copied()),
        expect,
        "{id}"
    );
    assert_eq!(split(grammar, start, letters), expect, "{id} by letters");
    assert_eq!(split(grammar, start, [&*whole]), expect, "{id} whole");
}

mod rows;

#[test]
fn rc_047_each_choice_has_a_state_of_its_own() {
    let families = Families::built_in().unwrap();
    let grammar = &families.named("deepseek-r1").unwrap().grammar;
    let start = Start {
        prompt_tail: Some("<think>\n"),
        thinking: None,
    };
    let mut choices = [(); 2].map(|()| (Splitter::new(grammar, start), String::new()));
    for (choice, text) in [
        (0, "red"),
        (1, "blue"),
        (0, "</think>Rose"),
        (1, " sky"),
        (0, "."),
        (1, "</think>Lake."),
    ] {
        let (splitter, said) = &mut choices[choice];
        splitter.push(text, &mut |piece| said.push_str(&format!("{piece:?} ")));
    }
    expect_test::expect![[r#"
        ["Reasoning(\"red\") Markup(\"</think>\") Content(\"Rose\") Content(\".\") ", "Reasoning(\"blue\") Reasoning(\" sky\") Markup(\"</think>\") Content(\"Lake.\") "]
    "#]]
    .assert_eq(&format!("{:?}\n", choices.map(|(_, said)| said)));
}

fn families() -> Vec<Grammar> {
    let families = Families::built_in().unwrap();
    families
        .rows()
        .iter()
        .map(|family| family.grammar.clone())
        .collect()
}

/// Text rich in this family's markers, whole and broken, and in letters of several bytes.
fn texts(grammar: &Grammar) -> impl Strategy<Value = String> + use<> {
    let mut bits: Vec<String> = [
        "a", "\n", " ", "<", "ö", "▷", "◁", "｜", "文", "Here", "[", "to=",
    ]
    .map(str::to_owned)
    .into();
    let channels =
        "<|start|> <|channel|> <|message|> <|end|> <|return|> <|call|> assistant analysis final";
    let markers: Vec<String> = match grammar {
        Grammar::Tags(tags) => tags.markers().map(str::to_owned).collect(),
        _ => channels.split(' ').map(str::to_owned).collect(),
    };
    for marker in markers {
        let middle = marker.chars().count() / 2;
        bits.push(marker.chars().take(middle).collect());
        bits.push(marker.chars().skip(middle).collect());
        bits.extend([marker.clone(), marker]);
    }
    prop::collection::vec(prop::sample::select(bits), 0..24).prop_map(|bits| bits.concat())
}

fn cases() -> impl Strategy<Value = (Grammar, String, Option<String>, Option<bool>)> {
    prop::sample::select(families()).prop_flat_map(|grammar| {
        let (text, tail) = (texts(&grammar), prop::option::of(texts(&grammar)));
        (Just(grammar), text, tail, any::<Option<bool>>())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn no_cut_changes_the_fields_and_all_pieces_are_the_text((grammar, text, tail, thinking) in cases()) {
        let start = Start { prompt_tail: tail.as_deref(), thinking };
        let whole = fields(&grammar, start, &[&text]);
        prop_assert_eq!(&whole[2], &text);
        let letters: Vec<&str> = text.split("").filter(|letter| !letter.is_empty()).collect();
        prop_assert_eq!(&fields(&grammar, start, &letters), &whole);
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (before, after) = text.split_at(at);
            prop_assert_eq!(&fields(&grammar, start, &[before, after]), &whole, "cut at {}", at);
        }
    }

    #[test]
    fn what_is_held_back_is_shorter_than_the_longest_marker((grammar, text, tail, thinking) in cases()) {
        let mut splitter = Splitter::new(&grammar, Start { prompt_tail: tail.as_deref(), thinking });
        for letter in text.split("") {
            splitter.push(letter, &mut |_| ());
            prop_assert!(splitter.held.len() < crate::families::MARKER_BYTES_MAX);
        }
    }
}
