//! Paths from the root of the repository, named anywhere in a text: pages, comments, messages.

use crate::page::{Finding, Page};
use crate::repository::Repository;

/// Folders of the root with which such a path begins.
const FOLDERS: [&str; 8] =
    ["docs/", "papers/", "conformance/", "crates/", "scenarios/", "bench/", "fuzz/", "xtask/"];

/// Endings of such a path.
const ENDINGS: [&str; 10] =
    [".md", ".rs", ".toml", ".csv", ".tcl", ".sh", ".c", ".h", ".py", ".json"];

/// Names that tests of the scenario reader give to made-up files.
const MADE_UP: [&str; 1] = ["scenarios/feeder.toml"];

/// Paths that do not exist.
pub(crate) fn check(repository: &Repository, page: &Page) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        let words = line.split(|c: char| !c.is_ascii_alphanumeric() && !"/._-*<>{}".contains(c));
        for word in words.map(|word| word.trim_end_matches('.')) {
            let is_path = FOLDERS.iter().any(|folder| word.starts_with(folder))
                && ENDINGS.iter().any(|ending| word.ends_with(ending))
                && !word.contains(['*', '<', '{']);
            if is_path && !repository.has(word) && !MADE_UP.contains(&word) {
                findings.push(page.finding(
                    index + 1,
                    format!("names `{word}`, which does not exist; correct the path"),
                ));
            }
        }
    }
    findings
}

#[test]
fn a_path_that_does_not_exist_is_reported() {
    let repository = Repository::made_up(&["docs/a.md"]);
    let text = "// See docs/a.md. Or (docs/*.md, docs/<name>.md)\n\"see docs/b.md\"\n";
    let found = check(&repository, &Page::made_up("x.rs", text));
    let message = "x.rs:2: names `docs/b.md`, which does not exist; correct the path";
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [message]);
}
