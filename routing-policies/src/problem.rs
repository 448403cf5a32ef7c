//! What is wrong with a policy file, said so that it can be put right.

use std::fmt;

/// One thing wrong at one place. Displays as `file:line:column: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file's name as it was given.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What stands there, and what is expected.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            message,
        } = self;
        write!(f, "{file}:{line}:{column}: {message}")
    }
}

/// All problems, one a line, and a last line that says what follows from them. Those of one file stand together.
#[must_use]
pub fn report(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems {
        text.push_str(&problem.to_string());
        text.push('\n');
    }
    let count = problems.len();
    let noun = if count == 1 { "problem" } else { "problems" };
    let files = problems.chunk_by(|a, b| a.file == b.file).count();
    let files_noun = if files == 1 { "file" } else { "files" };
    text.push_str(&format!(
        "{count} {noun} in {files} {files_noun}; the gateway would keep its running policy\n"
    ));
    text
}
