//! Words that leave a reader in doubt: doc comments that begin with a pronoun, and names of
//! closures and values that are no nouns.

use std::path::PathBuf;

use crate::repository::{read, rust_files};
use crate::source::without_comments;

/// Beginnings of a doc comment that name no subject.
const PRONOUNS: [&str; 4] = ["What ", "It ", "This one ", "Who "];

/// The name of a closure that has no meaning.
const NAMELESS_CLOSURE: &str = "let of = |";

/// The numbers of the lines at which a doc comment begins with a pronoun.
fn doc_comments_without_subject(source: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (index, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or(line.strip_prefix("//!"));
        let text = text.map(str::trim_start);
        let begins = !is_inside && text.is_some_and(|text| !text.is_empty());
        if begins && text.is_some_and(|text| PRONOUNS.iter().any(|word| text.starts_with(word))) {
            found.push(index + 1);
        }
        is_inside = text.is_some();
    }
    found
}

fn checked_files() -> Vec<PathBuf> {
    rust_files(&["crates", "conformance", "fuzz", "xtask"])
}

#[test]
fn doc_comments_begin_with_their_subject() {
    let mut found = Vec::new();
    for path in checked_files() {
        let lines = doc_comments_without_subject(&read(&path));
        found.extend(lines.iter().map(|line| format!("{}:{line}", path.display())));
    }
    assert!(found.is_empty(), "doc comments that begin with a pronoun:\n{}", found.join("\n"));
}

/// Lines of code in which a closure or a value has a name without a meaning.
fn nameless(code: &str) -> impl Iterator<Item = &str> {
    let is_nameless = |line: &str| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        line.contains(NAMELESS_CLOSURE) || words.any(|word| word == "it")
    };
    code.lines().filter(move |line| is_nameless(line))
}

#[test]
fn closures_and_values_have_names() {
    let mut found = Vec::new();
    for path in checked_files() {
        let code = without_comments(&read(&path));
        found.extend(nameless(&code).map(|line| format!("{}: {}", path.display(), line.trim())));
    }
    assert!(found.is_empty(), "name the closure or the value:\n{}", found.join("\n"));
}

#[test]
fn a_pronoun_is_found_as_a_word() {
    let code = "let item = unit.iter();\nlet of = |x| x;\nlet len = |(_, it)| it.len();";
    assert!(nameless(code).eq(code.lines().skip(1)));
}

#[test]
fn only_the_first_line_of_a_doc_comment_is_its_beginning() {
    let source =
        "//! What a.\n//! What b.\nuse c;\n/// It is d.\nfn e() {}\n/// The f.\n/// It is g.\n";
    assert_eq!(doc_comments_without_subject(source), [1, 4]);
}
