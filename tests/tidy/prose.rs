//! What documents promise: links that lead somewhere, commands that exist, a changelog that says who notices.

use crate::sources::{files, none, root};

#[test]
fn links_between_documents_lead_somewhere() {
    let mut offenders = Vec::new();
    for file in files(".", &[".md"]) {
        let folder = root()
            .join(&file.path)
            .parent()
            .expect("a file lies in a folder")
            .to_owned();
        for target in file
            .text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let target = target.split('#').next().unwrap_or("");
            if !target.is_empty() && !target.contains("://") && !folder.join(target).exists() {
                offenders.push(format!("{}: {target}", file.path));
            }
        }
    }
    none("a link to nothing", &offenders);
}

#[test]
fn every_changelog_line_says_who_notices() {
    let text = std::fs::read_to_string(root().join("CHANGELOG.md")).expect("CHANGELOG.md");
    let who = ["**client**", "**policy**", "**operator**", "**internal**"];
    let offenders: Vec<String> = text
        .lines()
        .filter(|l| l.starts_with("- ") && !who.iter().any(|w| l[2..].starts_with(w)))
        .map(str::to_owned)
        .collect();
    none("start the line with who notices", &offenders);
}

#[test]
fn the_readmes_commands_are_make_targets() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("Makefile");
    for file in ["README.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(root().join(file)).expect(file);
        for target in text
            .split("make ")
            .skip(1)
            .filter_map(|t| t.split(|c: char| !c.is_ascii_lowercase()).next())
        {
            let named = ["up", "test", "check", "bench"].contains(&target);
            assert!(
                !named || makefile.contains(&format!("\n{target}:")),
                "{file} names `make {target}`"
            );
        }
    }
}

#[test]
fn the_project_speaks_of_itself_alone() {
    // Absolute paths of somebody's machine, and addresses of package hosts, mean nothing to a reader.
    let marks = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("pythonhosted", ".org"),
        concat!("registry.npm", "js"),
    ];
    let mut offenders = Vec::new();
    for file in files(
        ".",
        &[
            ".rs", ".md", ".toml", ".py", ".sh", ".mjs", ".json", ".yml", ".yaml", ".cu",
        ],
    ) {
        for mark in marks {
            if file.text.contains(mark) {
                offenders.push(format!("{}: {mark}", file.path));
            }
        }
    }
    none("names a machine or a host", &offenders);
}
