//! A turn as the classifier reads it: its two ends, in lower case and without Latin accents, with its words marked.

use std::ops::Range;

/// Bytes that are read from the beginning of a turn.
pub const HEAD_BYTES: usize = 2_048;
/// Bytes that are read from the end of a longer turn: a question often follows the document that it is about.
pub const TAIL_BYTES: usize = 1_024;
/// Letters of a word that count. Longer ones are data or made-up.
const WORD_CHARS_MAX: usize = 32;

/// The parts of a turn that are read: all of it, or its two ends.
pub(super) fn ends(text: &str) -> (&str, &str) {
    if text.len() <= HEAD_BYTES + TAIL_BYTES {
        return (text, "");
    }
    let boundary = |at: &usize| text.is_char_boundary(*at);
    let head = (0..=HEAD_BYTES).rev().find(boundary).unwrap_or(0);
    let tail = (text.len() - TAIL_BYTES..text.len()).find(boundary);
    let tail = tail.unwrap_or(text.len());
    (&text[..head], &text[tail..])
}

/// What a word is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters of a script that puts spaces between words.
    Letters,
    /// Letters of a script that does not: Han, kana, Thai and their like.
    Dense,
    /// Digits.
    Digits,
}

/// A run of characters of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) kind: Kind,
    /// Where it lies in [`Normal::text`].
    pub(super) span: Range<usize>,
}

/// Text in its plainest form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Normal {
    /// Lower case, no Latin accents, one space for any white space.
    pub(super) text: String,
    /// Its words in order.
    pub(super) words: Vec<Word>,
}

impl Normal {
    /// Of a text that has been cut to size.
    pub(super) fn of(text: &str) -> Self {
        let mut normal = Self {
            text: String::with_capacity(text.len() + 16),
            words: Vec::with_capacity(text.len() / 4),
        };
        normal.push(text);
        normal
    }

    /// Of the two ends of a turn, with a space between.
    pub(super) fn of_ends((head, tail): (&str, &str)) -> Self {
        let mut normal = Self::of(head);
        if !tail.is_empty() {
            normal.push(" ");
            normal.push(tail);
        }
        normal
    }

    fn push(&mut self, text: &str) {
        let mut open: Option<(Kind, usize)> = None;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let latin = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            if latin > 0 {
                self.put_latin(&mut open, &rest[..latin]);
                rest = &rest[latin..];
                continue;
            }
            rest = &rest[c.len_utf8()..];
            if c.is_ascii() || is_settled(c) {
                self.put(&mut open, c);
            } else if !is_dropped(c) {
                for c in c.to_lowercase() {
                    self.put(&mut open, plain(c));
                }
            }
        }
        self.close(&mut open);
    }

    /// Letters from a to z, which are most of what comes.
    fn put_latin(&mut self, open: &mut Option<(Kind, usize)>, letters: &str) {
        if open.is_some_and(|(of, _)| of != Kind::Letters) {
            self.close(open);
        }
        let start = self.text.len();
        open.get_or_insert((Kind::Letters, start));
        self.text.push_str(letters);
        self.text[start..].make_ascii_lowercase();
    }

    fn put(&mut self, open: &mut Option<(Kind, usize)>, c: char) {
        let kind = kind(c);
        if open.is_some_and(|(of, _)| Some(of) != kind) {
            self.close(open);
        }
        if c.is_whitespace() {
            if !self.text.ends_with(' ') {
                self.text.push(' ');
            }
            return;
        }
        if let (Some(kind), None) = (kind, &open) {
            *open = Some((kind, self.text.len()));
        }
        self.text.push(c);
    }

    fn close(&mut self, open: &mut Option<(Kind, usize)>) {
        if let Some((kind, start)) = open.take() {
            let span = start..self.text.len();
            self.words.push(Word { kind, span });
        }
    }

    /// A word's characters, as many as count.
    pub(super) fn chars(&self, word: &Word) -> impl Iterator<Item = char> {
        self.text[word.span.clone()].chars().take(WORD_CHARS_MAX)
    }
}

fn kind(c: char) -> Option<Kind> {
    match c {
        'a'..='z' => Some(Kind::Letters),
        '0'..='9' => Some(Kind::Digits),
        '\0'..='\u{7f}' => None,
        _ if is_dense(c) => Some(Kind::Dense),
        _ if is_settled(c) => Some(Kind::Letters),
        _ if c.is_numeric() => Some(Kind::Digits),
        _ if c.is_alphabetic() || is_joiner(c) => Some(Kind::Letters),
        _ => None,
    }
}

/// Letters of the commonest other scripts, which are as plain as can be: no look-up in Unicode's tables is needed.
pub(super) fn is_settled(c: char) -> bool {
    matches!(c, 'а'..='я' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// Scripts whose words have no spaces between them.
fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Signs of Indian scripts inside words that are no letters by themselves.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{900}'..='\u{dff}') && !matches!(c, '\u{964}' | '\u{965}' | '\u{970}')
}

/// Marks over and under letters that most writers leave out.
fn is_dropped(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{200b}'..='\u{200f}' | '\u{feff}')
}

/// Without the accent that a lower-case letter bears, and the half-width form of a full-width sign.
fn plain(c: char) -> char {
    match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'ǎ' | '\u{1ea1}'..='\u{1eb7}' => 'a',
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => 'c',
        'ď' | 'đ' => 'd',
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' | '\u{1eb9}'..='\u{1ec7}' => 'e',
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => 'g',
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' | '\u{1ec9}' | '\u{1ecb}' => 'i',
        'ķ' => 'k',
        'ĺ' | 'ļ' | 'ľ' | 'ł' => 'l',
        'ñ' | 'ń' | 'ņ' | 'ň' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' | 'ơ' | '\u{1ecd}'..='\u{1ee3}' => 'o',
        'ŕ' | 'ř' => 'r',
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' | 'ß' => 's',
        'ţ' | 'ť' | 'ț' => 't',
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' | 'ư' | '\u{1ee5}'..='\u{1ef1}' => {
            'u'
        }
        'ý' | 'ÿ' | '\u{1ef3}'..='\u{1ef9}' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        'ά' => 'α',
        'έ' => 'ε',
        'ή' => 'η',
        'ί' => 'ι',
        'ό' => 'ο',
        'ύ' => 'υ',
        'ώ' => 'ω',
        'ς' => 'σ',
        'ё' => 'е',
        'أ' | 'إ' | 'آ' => 'ا',
        'ى' => 'ي',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '’' | '‘' => '\'',
        '“' | '”' | '«' | '»' | '„' => '"',
        '–' | '−' => '-',
        _ => c,
    }
}
