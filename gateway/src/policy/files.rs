//! Policy files, read and checked together, so that every problem of all of them is told at once.

use std::path::{Path, PathBuf};

use routing_policies::{Policy, compile, fingerprint, report};

use crate::state::families::ModelTable;

/// A good policy file.
pub(super) struct Loaded {
    /// Its name as it was given.
    pub(super) name: String,
    /// What it says.
    pub(super) policy: Policy,
    /// A hash of its text.
    pub(super) version: u64,
}

/// All of them, or everything that is wrong with any of them.
pub(super) fn load<P: AsRef<Path>>(files: &[P]) -> Result<Vec<Loaded>, String> {
    let (mut good, mut problems, mut why) = (Vec::new(), Vec::new(), String::new());
    for file in files {
        let name = file.as_ref().display().to_string();
        match std::fs::read_to_string(file) {
            Err(error) => why.push_str(&format!("{name}: cannot be read: {error}\n")),
            Ok(text) => match compile(&name, &text) {
                Err(found) => problems.extend(found),
                Ok(policy) => {
                    if let Err(wrong) = ModelTable::new(&name, &text, &policy, &[]) {
                        why.push_str(&wrong);
                        why.push('\n');
                    }
                    good.push(Loaded {
                        version: fingerprint(&text),
                        name,
                        policy,
                    });
                }
            },
        }
    }
    if !problems.is_empty() {
        why.push_str(&report(&problems));
    }
    if why.is_empty() {
        Ok(good)
    } else {
        Err(why.trim_end().to_owned())
    }
}

/// `gateway policy check`: a line for each file.
pub(super) fn check(files: &[PathBuf]) -> Result<String, String> {
    let line = |file: Loaded| format!("{}: good, version {:016x}\n", file.name, file.version);
    Ok(load(files)?.into_iter().map(line).collect())
}
