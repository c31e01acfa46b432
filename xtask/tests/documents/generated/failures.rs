//! `docs/failures-of-others.md`: public failures of other programs, and the tests that exclude
//! them.

use serde::Deserialize;

use super::data;
use super::evidence::Tests;
use super::from_docs;
use crate::repository::Repository;

/// Least number of failures with a test.
const COVERED_MIN: usize = 25;

const INTRODUCTION: &str = "\
# Failures of others

<!-- Generated from docs/data/failures.toml by `cargo xtask docs`. -->

Public failures of programs with similar tasks, and the tests of gridhaul that would fail with the
same fault. These programs are good, and most of the failures are repaired: their public threads
make it possible to learn from them.
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    failure: Vec<Failure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    topic: String,
    peer: String,
    /// `owner/name/issues/number`, or with `pull`.
    thread: String,
    failure: String,
    #[serde(default)]
    tests: Vec<String>,
    not_covered: Option<String>,
}

/// The page and what is wrong with its data.
pub(crate) struct Failures {
    pub(crate) page: String,
    pub(crate) errors: Vec<String>,
}

impl Failures {
    pub(crate) fn generate(repository: &Repository) -> Self {
        let file: File = data(repository, "failures");
        let tests = Tests::read(repository);
        let mut errors = Vec::new();
        let covered = file.failure.iter().filter(|failure| !failure.tests.is_empty()).count();
        if covered < COVERED_MIN {
            errors.push(format!("{covered} failures have a test, and not {COVERED_MIN}"));
        }
        let mut page = INTRODUCTION.to_owned();
        let mut topic = "";
        for failure in &file.failure {
            if topic != failure.topic {
                topic = &failure.topic;
                page +=
                    &format!("\n## {topic}\n\n| program | failure | test here |\n|---|---|---|\n");
            }
            page += &failure.row(&tests, &mut errors);
        }
        Self { page, errors }
    }
}

impl Failure {
    fn row(&self, tests: &Tests, errors: &mut Vec<String>) -> String {
        let Self { peer, thread, failure, .. } = self;
        let parts: Vec<_> = thread.split('/').collect();
        let [owner, name, kind, number] = parts[..] else {
            errors.push(format!("{thread}: owner/name/issues/number is expected"));
            return String::new();
        };
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || !["issues", "pull"].contains(&kind) {
            errors.push(format!("{thread}: owner/name/issues/number is expected"));
        }
        let shown = self.shown(tests, errors);
        let link = format!("[{owner}/{name}#{number}](https://github.com/{thread})");
        format!("| {peer} | {failure} {link} | {shown} |\n")
    }

    fn shown(&self, tests: &Tests, errors: &mut Vec<String>) -> String {
        if let Some(reason) = &self.not_covered {
            if !self.tests.is_empty() {
                errors.push(format!("{}: either tests or not_covered", self.thread));
            }
            return format!("**not covered**: {reason}");
        }
        if self.tests.is_empty() {
            errors.push(format!("{}: no test and no reason in not_covered", self.thread));
        }
        let links = self.tests.iter().map(|test| match tests.files(test)[..] {
            [] => {
                errors.push(format!("{}: there is no test {test}", self.thread));
                String::new()
            }
            [path, ..] => format!("[`{test}`]({})", from_docs(path)),
        });
        links.collect::<Vec<_>>().join(", ")
    }
}
