//! Counts of signs, letters and lines in one pass over a turn's characters.

use super::text::is_settled;

/// A character with what is asked of it.
#[derive(Clone, Copy)]
struct Sign {
    c: char,
    digit: bool,
    alphabetic: bool,
    upper: bool,
    lower: bool,
}

impl Sign {
    fn of(c: char) -> Self {
        let settled = is_settled(c);
        let alphabetic = settled || c.is_alphabetic();
        Self {
            c,
            digit: c.is_ascii_digit(),
            alphabetic,
            upper: alphabetic && !settled && c.is_uppercase(),
            lower: alphabetic && (c.is_ascii_lowercase() || (!c.is_ascii() && c.is_lowercase())),
        }
    }

    fn alphanumeric(self) -> bool {
        self.alphabetic || self.digit || (!self.c.is_ascii() && self.c.is_numeric())
    }
}

/// Counts of one pass over a turn's characters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) chars: u32,
    pub(super) digits: u32,
    pub(super) numbers: u32,
    pub(super) decimals: u32,
    pub(super) letters: u32,
    pub(super) capitals: u32,
    pub(super) lone_letters: u32,
    pub(super) dollars: u32,
    pub(super) money: u32,
    pub(super) percents: u32,
    pub(super) backslashes: u32,
    pub(super) carets: u32,
    pub(super) equals: u32,
    pub(super) operators: u32,
    pub(super) math_signs: u32,
    pub(super) braces: u32,
    pub(super) brackets: u32,
    pub(super) calls: u32,
    pub(super) semicolon_ends: u32,
    pub(super) underscores: u32,
    pub(super) camels: u32,
    pub(super) backticks: u32,
    pub(super) arrows: u32,
    pub(super) questions: u32,
    pub(super) exclamations: u32,
    pub(super) quotes: u32,
    pub(super) colons: u32,
    pub(super) commas: u32,
    pub(super) newlines: u32,
    pub(super) blank_lines: u32,
    pub(super) list_lines: u32,
    pub(super) indented_lines: u32,
    pub(super) options: u32,
    pub(super) placeholders: u32,
}

impl Counts {
    /// Counts what a text has.
    pub(super) fn add(&mut self, text: &str) {
        let n = self;
        let mut before = ' ';
        let mut last = Sign::of('\n');
        let end = last;
        let mut chars = text.chars().map(Sign::of);
        let mut coming = chars.next();
        while let Some(sign) = coming {
            coming = chars.next();
            let next = coming.unwrap_or(end);
            let c = sign.c;
            n.chars += 1;
            if sign.digit {
                n.digits += 1;
                n.numbers += u32::from(!last.digit && last.c != '.');
                n.decimals += u32::from(last.c == '.' && next.digit);
            } else if sign.alphabetic && !matches!(c, 'π' | 'θ') {
                n.letter(last, sign, next);
            } else if !matches!(c, ' ' | '.') {
                n.sign(before, last, c, next);
            }
            let option = matches!(c, ')' | '.' | '）' | '．') && matches!(last.c, 'A'..='E');
            n.options += u32::from(option && !before.is_alphanumeric());
            if last.c == '\n' {
                n.line(c, next.c);
            }
            (before, last) = (last.c, sign);
        }
    }

    fn letter(&mut self, last: Sign, sign: Sign, next: Sign) {
        self.letters += 1;
        self.capitals += u32::from(sign.upper && !last.alphabetic);
        self.camels += u32::from(sign.upper && last.lower);
        if !last.alphanumeric() && !next.alphanumeric() {
            let word = matches!(sign.c, 'a' | 'A' | 'I' | 'y' | 'e' | 'o' | 'à' | 'é' | 'è');
            self.lone_letters += u32::from(last.c != '\'' && !word && sign.c < 'Ѐ');
        }
    }

    fn sign(&mut self, before: char, last: Sign, c: char, next: Sign) {
        let spaced = last.c == ' ' && next.c == ' ';
        let number = last.digit || next.digit || last.c == ')' || next.c == '(';
        match c {
            '$' if next.digit => self.money += 1,
            '$' => self.dollars += 1,
            '€' | '£' | '¥' | '₽' | '₹' => self.money += 1,
            '%' | '％' => self.percents += 1,
            '\\' => self.backslashes += u32::from(next.alphabetic),
            '^' => self.carets += 1,
            '=' => self.equals += 1,
            '+' | '*' | '/' | '<' | '>' if spaced || number => self.operators += 1,
            '-' if (spaced && before.is_ascii_digit()) || (last.digit && next.digit) => {
                self.operators += 1;
            }
            '×' | '÷' | '±' | '√' | '∑' | '∏' | '∫' | '∞' | '≤' | '≥' | '≠' | '≈' | '∈' | '∀'
            | '∃' | '∧' | '∨' | '¬' | '⊂' | '∪' | '∩' | '°' | 'π' | 'θ' | '²' | '³' | '△' | '∠'
            | '⇒' | '↔' => {
                self.math_signs += 1;
            }
            '{' | '}' => self.braces += 1,
            '[' | ']' => self.brackets += 1,
            '(' => self.calls += u32::from(last.alphanumeric() || last.c == '_'),
            ';' => self.semicolon_ends += u32::from(next.c == '\n'),
            '_' => self.underscores += u32::from(last.alphanumeric() && next.alphanumeric()),
            '`' => self.backticks += 1,
            '?' | '？' | '؟' | '¿' => self.questions += 1,
            '!' | '！' | '¡' => self.exclamations += 1,
            '"' | '“' | '«' | '„' | '「' | '”' | '»' => self.quotes += 1,
            ':' | '：' => self.colons += 1,
            ',' | '，' | '、' | '،' => self.commas += 1,
            '\n' => {
                self.newlines += 1;
                self.blank_lines += u32::from(last.c == '\n');
            }
            _ => {}
        }
        self.arrows += u32::from(c == '>' && matches!(last.c, '-' | '='));
        self.placeholders += u32::from(matches!(c, '[' | '<') && next.alphabetic);
    }

    fn line(&mut self, c: char, next: char) {
        self.list_lines += u32::from(
            matches!(c, '-' | '*' | '•') && next == ' '
                || c.is_ascii_digit() && matches!(next, '.' | ')'),
        );
        self.indented_lines += u32::from(c == '\t' || c == ' ' && next == ' ');
    }
}
