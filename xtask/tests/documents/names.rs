//! Names of tests.

use std::collections::BTreeSet;

use crate::keys::UNITS;
use crate::page::{Finding, Page, Span};
use crate::repository::Repository;

/// Beginnings of the names of functions and variables in Linux.
const IN_LINUX: [&str; 6] = ["tcp_", "tcpi_", "__tcp_", "bbr_", "hystart_", "sk_"];

/// Crates that are deliberately not used, and names that modules must not have.
const ABSENT: [&str; 5] = ["plotters", "rand_distr", "aya", "utils", "helpers"];

/// The names of all functions in Rust and Python.
pub(crate) fn functions(repository: &Repository) -> BTreeSet<String> {
    let sources: Vec<_> = repository
        .entries()
        .filter(|path| path.ends_with(".rs") || path.ends_with(".py"))
        .collect();
    let mut names = BTreeSet::new();
    for text in sources.iter().map(|path| repository.read(path)) {
        for (mark, line) in text.lines().flat_map(|line| [("fn ", line), ("def ", line)]) {
            let after = line.split_once(mark).map_or("", |(_, after)| after);
            let end = after.find(|c: char| !is_of_name(c)).unwrap_or(after.len());
            names.insert(after[..end].to_owned());
        }
    }
    names
}

/// All identifiers outside comments, in sources of any language.
pub(crate) fn identifiers(repository: &Repository) -> BTreeSet<String> {
    let endings = [".rs", ".py", ".c", ".h", ".tcl", ".toml"];
    let is_source = |path: &&str| {
        endings.iter().any(|ending| path.ends_with(ending)) && repository.is_file(path)
    };
    let mut words = BTreeSet::new();
    for text in repository.entries().filter(is_source).map(|path| repository.read(path)) {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        words.extend(code.flat_map(|line| line.split(|c| !is_of_identifier(c))).map(str::to_owned));
    }
    words
}

/// Code spans of a page about the code, such as `LinkSet` and `Scenario::stages`, that no source
/// contains.
pub(crate) fn check_identifiers(page: &Page, known: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Span { line, text } in page.code_spans() {
        let is_path = text.chars().all(|c| is_of_identifier(c) || c == ':');
        let unknown =
            text.split("::").find(|name| !known.contains(*name) && !ABSENT.contains(name));
        if let Some(name) = unknown.filter(|_| is_path) {
            findings.push(page.finding(
                line,
                format!("names `{name}`, which no source contains; correct the name"),
            ));
        }
    }
    findings
}

/// Words in backticks with three underscores or more that are neither a function nor known
/// otherwise.
pub(crate) fn check(page: &Page, known: &impl Fn(&str) -> bool) -> Vec<Finding> {
    let metric = |text: &str| UNITS.iter().any(|unit| text.ends_with(unit));
    let long = |text: &str| {
        text.chars().all(is_of_name) && text.matches('_').count() >= 3 && !metric(text)
    };
    let spans = page.code_spans().into_iter().filter(|span| long(&span.text));
    // Variables of ns-2 end with an underscore.
    let is_foreign =
        |name: &str| name.ends_with('_') || IN_LINUX.iter().any(|start| name.starts_with(start));
    let unknown = spans.filter(|span| !known(&span.text) && !is_foreign(&span.text));
    unknown
        .map(|span| {
            let name = &span.text;
            page.finding(
                span.line,
                format!("names a test `{name}`, but no file has `fn {name}`; correct the name"),
            )
        })
        .collect()
}

fn is_of_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

#[test]
fn a_test_that_does_not_exist_is_reported() {
    let page = Page::made_up("a.md", "`a_test_that_exists`, `a_test_that_is_gone`, `short_name`\n");
    let found = check(&page, &|name| name == "a_test_that_exists");
    let message = "a.md:1: names a test `a_test_that_is_gone`, but no file has `fn \
                   a_test_that_is_gone`; correct the name";
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [message]);
}

#[test]
fn an_identifier_that_no_source_contains_is_reported() {
    let page = Page::made_up(
        "a.md",
        "`LinkSet`, `LinkSet::offer`,\n`LinkSet::gone`, `not an identifier`\n",
    );
    let known = ["LinkSet", "offer"].map(str::to_owned).into();
    let found = check_identifiers(&page, &known);
    let message = "a.md:2: names `gone`, which no source contains; correct the name";
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [message]);
}
