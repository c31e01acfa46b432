//! Tests, cases of the conformance suite and code by which a page shows a statement.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::citations;
use crate::repository::Repository;

/// Marks in the lines before a function that make it a test.
const MARKS: [&str; 2] = ["#[test]", "#[tokio::test"];

/// The files of each test, by its name.
pub(crate) struct Tests(BTreeMap<String, BTreeSet<String>>);

/// A case of the conformance suite.
pub(crate) struct Case {
    /// `topic/case`.
    pub(crate) name: String,
    /// The RFC sections of its `source`, such as `9293, 3.4`.
    pub(crate) sections: BTreeSet<String>,
    pub(crate) deviation: Option<String>,
}

impl Tests {
    /// All tests in Rust and Python.
    pub(crate) fn read(repository: &Repository) -> Self {
        let mut tests: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for path in repository.entries().filter(|path| is_source(path)) {
            for name in tests_of(path, &repository.read(path)) {
                tests.entry(name).or_default().insert(path.to_owned());
            }
        }
        Self(tests)
    }

    /// The names of all tests.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The files of a test; empty if there is no such test.
    pub(crate) fn files(&self, name: &str) -> Vec<&str> {
        self.0.get(name).into_iter().flatten().map(String::as_str).collect()
    }
}

impl Case {
    /// All cases, in the order of their names.
    pub(crate) fn read_all(repository: &Repository) -> Vec<Self> {
        let folder = "conformance/cases/";
        let is_case = |path: &&str| path.starts_with(folder) && path.ends_with(".toml");
        let cases = repository.entries().filter(is_case).map(|path| {
            let keys: CaseKeys = toml::from_str(&repository.read(path))
                .unwrap_or_else(|error| panic!("{path}: {error}"));
            let name = path.trim_start_matches(folder).trim_end_matches(".toml").to_owned();
            let sections = citations::sections(&keys.source);
            Self { name, sections, deviation: keys.deviation }
        });
        cases.collect()
    }
}

#[derive(Deserialize)]
struct CaseKeys {
    #[serde(default)]
    source: String,
    deviation: Option<String>,
}

/// The files of the crates whose comments cite each section, such as `9293, 3.4`.
pub(crate) fn citing_files(repository: &Repository) -> BTreeMap<String, BTreeSet<String>> {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let is_code = |path: &&str| {
        let (folders, name) = path.rsplit_once('/').unwrap_or_default();
        path.starts_with("crates/")
            && path.contains("/src/")
            && path.ends_with(".rs")
            && !name.contains("test")
            && !folders.contains("/tests")
    };
    for path in repository.entries().filter(is_code) {
        for section in citations::sections(&repository.read(path)) {
            files.entry(section).or_default().insert(path.to_owned());
        }
    }
    files
}

fn is_source(path: &str) -> bool {
    path.ends_with(".rs") && !path.starts_with("xtask/tests/documents/generated/")
        || path.ends_with(".py")
}

/// The names of the tests of a source.
fn tests_of(path: &str, text: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let mut names = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let starts = ["fn ", "async fn ", "def "];
        let Some(rest) = starts.iter().find_map(|start| line.strip_prefix(start)) else { continue };
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        // Attributes and comments directly before the function.
        let before = lines[..index].iter().rev().take_while(|line| {
            line.starts_with("#[") || line.starts_with("//") || line.ends_with(']')
        });
        let is_test = match path.ends_with(".py") {
            true => name.starts_with("test_"),
            false => before.into_iter().any(|line| is_mark(line)),
        };
        if is_test {
            names.push(name.to_owned());
        }
    }
    names
}

fn is_mark(line: &str) -> bool {
    MARKS.iter().any(|mark| line.starts_with(mark))
}

#[test]
fn only_functions_with_the_mark_of_a_test_are_tests() {
    let source = "#[test]\nfn first() {\n\n/// Text.\n#[ignore = \"long\"]\n#[test]\n\
                  fn second() {\n\
                  fn third() {\n";
    assert_eq!(tests_of("a.rs", source), ["first", "second"]);
}
